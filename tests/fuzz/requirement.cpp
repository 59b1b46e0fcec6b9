// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/requirement.hpp"

#include <cstddef>
#include <cstdint>

#include "gpu/grant/request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace gpu = berth::gpu;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  berth::ignore(gpu::parse_request(text));
  auto requirement = gpu::parse_requirement(text);
  if (requirement.ok()) {
    gpu::evaluate(*requirement, {.cuda = "12.8", .driver = "570.1", .arch = "9.0", .brand = {}});
  }
  return 0;
}
