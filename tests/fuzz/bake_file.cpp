// SPDX-License-Identifier: Apache-2.0
#include "bake/bake_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bake/containerfile.hpp"

// What reads has cells of different names, all of which can be found; whatever else it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace bake = berth::bake;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = bake::read_bake_file(text, "bake.toml");
  if (file.ok()) {
    if (file->cells.empty() || file->cells.size() > bake::kMaxCells) std::abort();
    for (const bake::Cell& cell : file->cells) {
      auto found = bake::cell_named(*file, cell.name);
      if (!found.ok() || found->axes != cell.axes) std::abort();
    }
  }
  auto bases = bake::base_images(text, {{"A", "1"}});
  if (bases.ok() && bases->size() > 1000) std::abort();
  return 0;
}
