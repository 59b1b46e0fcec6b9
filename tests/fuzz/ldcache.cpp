// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "scan/loader_cache.hpp"

// What was read once is written and read again: the entries must be the same ones, sorted.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace scan = berth::scan;
  auto cache = scan::read_loader_cache(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!cache.ok()) return 0;
  auto again = scan::read_loader_cache(scan::write_loader_cache(*cache));
  if (!again.ok() || again->entries.size() != cache->entries.size()) std::abort();
  return 0;
}
