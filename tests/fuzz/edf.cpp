// SPDX-License-Identifier: Apache-2.0
// Environment definition files that name each other: whatever is in them, reading ends.
#include <cstddef>
#include <cstdint>
#include <string>

#include "edf/resolve.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace edf = berth::edf;
  std::string text(reinterpret_cast<const char*>(data), size);
  // Every name is one more file with the same text.
  auto load = [&](const std::string& name) -> berth::Result<edf::File> {
    return edf::File{name, text};
  };
  auto look_up = [](std::string_view name) {
    return name == "UNSET" ? std::nullopt : std::optional<std::string_view>(name);
  };
  berth::ignore(edf::expand(text, look_up));
  berth::ignore(edf::resolve({"first.toml", text}, load, look_up));
  return 0;
}
