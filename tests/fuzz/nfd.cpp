// SPDX-License-Identifier: Apache-2.0
#include "bake/nfd.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// What reads gives words that every node reads, whatever else it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace bake = berth::bake;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto rules = bake::read_nfd(text, "nfd.yaml", {});
  if (!rules.ok()) return 0;
  for (const auto& [axis, value] : rules->words) {
    if (!bake::check_axis(axis, value).ok()) std::abort();
    if (!bake::asks_as_much(axis, value, value)) std::abort();
  }
  if (rules->index >= rules->sets) std::abort();
  auto again = bake::read_nfd(text, "nfd.yaml", rules->tag);
  if (!again.ok() || again->words != rules->words) std::abort();
  return 0;
}
