// SPDX-License-Identifier: Apache-2.0
// A file that may be a squashfs or a SIF: which part of it would be mounted lies inside of it.
#include <string>

#include "base/assert.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/image_file.hpp"

using namespace berth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sys::Fd file = *sys::memory_file("image", {reinterpret_cast<const char*>(data), size});
  auto part = sys::identify_image(file, "image");
  if (!part.ok() || !*part) return 0;
  BERTH_ASSERT((*part)->extent.offset <= size);
  BERTH_ASSERT((*part)->extent.size <= size - (*part)->extent.offset);
  return 0;
}
