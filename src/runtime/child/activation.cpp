// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/activation.hpp"

#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "sys/process/program.hpp"

namespace berth::runtime {
namespace {

constexpr uint64_t kMost = 65536;  // no service manager passes more

std::optional<std::string> variable_value(const std::vector<std::string>& environment,
                                          const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

Activation read_activation(const std::vector<std::string>& environment) {
  auto count = parse_u64(variable_value(environment, "LISTEN_FDS").value_or(""));
  auto whose = variable_value(environment, "LISTEN_PID");
  if (!count || *count > kMost || (whose && *whose != std::to_string(sys::own_pid()))) return {};
  return {static_cast<int>(*count), variable_value(environment, "LISTEN_FDNAMES").value_or("")};
}

void add_activation(const Activation& activation, std::vector<std::string>& env) {
  if (activation.count == 0) return;
  std::erase_if(env, [](const std::string& entry) { return entry.starts_with("LISTEN_"); });
  env.push_back("LISTEN_PID=" + std::to_string(sys::own_pid()));
  env.push_back("LISTEN_FDS=" + std::to_string(activation.count));
  if (!activation.names.empty()) env.push_back("LISTEN_FDNAMES=" + activation.names);
}

}  // namespace berth::runtime
