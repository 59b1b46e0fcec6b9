// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gpu/inventory/cache.hpp"
#include "json/fields.hpp"

// A cache file: what was read once is written and read again, and must be the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace gpu = berth::gpu;
  std::string_view text(reinterpret_cast<const char*>(data), size), rest;
  auto head = gpu::read_cache_head(text, rest);
  auto inventory = berth::json::read<gpu::Inventory>(head ? rest : text, "inventory");
  if (!head || !inventory.ok()) return 0;
  std::string written = gpu::write_cached(*head, *inventory);
  auto again = gpu::read_cache_head(written, rest);
  if (!again || again->fingerprint != head->fingerprint) std::abort();
  auto second = berth::json::read<gpu::Inventory>(rest, "inventory");
  if (!second.ok() || gpu::write_cached(*again, *second) != written) std::abort();
  return 0;
}
