// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "scan/loader.hpp"

// What was read once is written and read again: the entries must be the same ones, sorted.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace scan = berth::scan;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto merged =
      scan::merged_loader_cache(bytes, {{"libcuda.so.1", "/n/libcuda.so.1", 0x303, 0, 0}});
  if (!scan::read_loader_cache(merged).ok()) std::abort();
  auto cache = scan::read_loader_cache(bytes);
  if (!cache.ok()) return 0;
  auto again = scan::read_loader_cache(scan::write_loader_cache(*cache));
  if (!again.ok() || again->entries.size() != cache->entries.size()) std::abort();
  return 0;
}
