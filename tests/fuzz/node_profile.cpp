// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "node/differences.hpp"
#include "node/file/load.hpp"
#include "node/what_if.hpp"

// A profile that reads is written in both forms and reads again as the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace node = berth::node;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (node::Form form : {node::Form::json, node::Form::toml}) {
    auto profile = node::read_profile(text, form, "n");
    if (!profile.ok()) continue;
    std::string json = node::write_profile(*profile, node::Form::json);
    for (node::Form other : {node::Form::json, node::Form::toml}) {
      auto again = node::read_profile(node::write_profile(*profile, other), other, "again");
      if (!again.ok() || node::write_profile(*again, node::Form::json) != json) std::abort();
      if (!node::differences(*profile, *again).empty()) std::abort();
    }
  }
  node::Profile plain;
  plain.architecture = "amd64";
  auto changed = node::with(plain, text.substr(0, 256));
  if (changed.ok() && changed->architecture.empty()) std::abort();
  return 0;
}
