// SPDX-License-Identifier: Apache-2.0
// A name that is accepted is read back from its canonical and from its familiar form as itself.
#include "image/reference.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using berth::image::Reference;
  auto reference = Reference::parse({reinterpret_cast<const char*>(data), size});
  if (!reference.ok()) return 0;
  auto canonical = Reference::parse(reference->canonical());
  BERTH_ASSERT(canonical.ok() && *canonical == *reference);
  auto familiar = Reference::parse(reference->familiar());
  BERTH_ASSERT(familiar.ok() && *familiar == *reference);
  return 0;
}
