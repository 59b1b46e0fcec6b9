// SPDX-License-Identifier: Apache-2.0
// A name that is accepted is read back from its canonical and from its familiar form as itself.
// What is searched for has a registry and no control characters.
#include "image/reference.hpp"

#include <cstdint>

#include "base/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using berth::image::Reference;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto term = berth::image::parse_search_term(text);
  if (term.ok()) {
    BERTH_ASSERT(!term->registry.empty());
    BERTH_ASSERT(berth::escape_controls(term->text) == term->text);
  }
  auto reference = Reference::parse(text);
  if (!reference.ok()) return 0;
  auto canonical = Reference::parse(reference->canonical());
  BERTH_ASSERT(canonical.ok() && *canonical == *reference);
  auto familiar = Reference::parse(reference->familiar());
  BERTH_ASSERT(familiar.ok() && *familiar == *reference);
  return 0;
}
