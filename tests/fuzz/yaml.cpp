// SPDX-License-Identifier: Apache-2.0
// YAML: no crash, limits kept, and what is written is read back as the same value.
#include <cstdint>

#include "yaml/read.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto value = yaml::parse(text, "f", {.max_bytes = 65536, .max_depth = 8, .max_values = 1000});
  if (!value.ok()) return 0;
  std::string written = yaml::dump(*value);
  auto again = yaml::parse(written, "g");
  BERTH_ASSERT(again.ok());
  BERTH_ASSERT(json::dump(*again) == json::dump(*value));
  return 0;
}
