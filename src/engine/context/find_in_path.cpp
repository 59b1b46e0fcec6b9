// SPDX-License-Identifier: Apache-2.0
#include "engine/context/find_in_path.hpp"

#include "base/text.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {

constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

std::string find_in_path(const Context& context, const std::string& name) {
  std::string_view path = context.environment.get("PATH").value_or(kUsualPath);
  for (std::string_view directory : split(path, ':')) {
    if (!directory.starts_with('/')) continue;
    std::string program = std::string(directory) + "/" + name;
    if (sys::check_executable(program).ok()) return program;
  }
  return "";
}

}  // namespace berth::engine
