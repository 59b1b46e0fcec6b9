// SPDX-License-Identifier: Apache-2.0
#include "facts/file_facts.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "facts/code/always_runs.hpp"
#include "facts/layer_scan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  scan::ReadAt read_at = [&](uint64_t offset, size_t length) -> Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(static_cast<size_t>(offset), length));
  };
  facts::LayerScan scan(facts::level_of_code);
  scan.add("a/file", read_at);
  scan.add("a/file.ptx", read_at);
  scan.link("b", "a/file");
  // What was written reads back as it is.
  auto back = facts::read_layer_facts(facts::write_layer_facts(scan.take()));
  if (!back.ok()) __builtin_trap();
  ignore(facts::read_layer_facts(bytes));
  return 0;
}
