// SPDX-License-Identifier: Apache-2.0
#include "engine/request/environment.hpp"

#include "engine/request/process.hpp"

namespace berth::engine {

std::vector<std::string> environment_of(const RunRequest& request) {
  std::vector<std::string> out = request.site.environment;
  out.insert(out.end(), request.environment.begin(), request.environment.end());
  const std::vector<std::string>& forced = request.site.forced_environment;
  out.insert(out.end(), forced.begin(), forced.end());
  return out;
}

std::vector<std::string> without_site_selection(const RunRequest& request) {
  RunRequest other;
  other.environment = request.environment;
  auto copy = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& entry : from) {
      if (variable_name(entry) != "NVIDIA_VISIBLE_DEVICES") to.push_back(entry);
    }
  };
  copy(request.site.environment, other.site.environment);
  copy(request.site.forced_environment, other.site.forced_environment);
  return environment_of(other);
}

}  // namespace berth::engine
