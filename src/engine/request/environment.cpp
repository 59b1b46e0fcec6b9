// SPDX-License-Identifier: Apache-2.0
#include "engine/request/environment.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

std::string_view variable_name(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

bool names_home(const std::vector<std::string>& environment) {
  return std::ranges::any_of(environment,
                             [](const std::string& entry) { return entry.starts_with("HOME="); });
}

std::vector<std::string> inherited_variables(const std::vector<std::string>& environment,
                                             const Environment& caller) {
  std::vector<std::string> inherited;
  for (const std::string& entry : environment) {
    if (entry.find('=') != std::string::npos) continue;
    if (auto value = caller.get(entry)) {
      inherited.push_back(entry + "=" + std::string(*value));
    }
  }
  return inherited;
}

std::vector<std::string> environment_of(const RunRequest& request) {
  std::vector<std::string> out = request.site.environment;
  out.insert(out.end(), request.environment.begin(), request.environment.end());
  const std::vector<std::string>& forced = request.site.forced_environment;
  out.insert(out.end(), forced.begin(), forced.end());
  return out;
}

std::vector<std::string> without_site_selection(const RunRequest& request) {
  RunRequest other = request;
  auto selects = [](const std::string& entry) {
    return variable_name(entry) == "NVIDIA_VISIBLE_DEVICES";
  };
  std::erase_if(other.site.environment, selects);
  std::erase_if(other.site.forced_environment, selects);
  return environment_of(other);
}

Result<std::vector<std::string>> make_environment(const EnvironmentInputs& inputs) {
  std::vector<std::string> entries = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOSTNAME=" + std::string(inputs.hostname)};
  if (inputs.terminal) entries.emplace_back("TERM=xterm");
  for (const std::string& entry : inputs.image) {
    // The image's config is untrusted: entries without '=' are dropped.
    if (entry.find('=') != std::string::npos && !entry.starts_with('=')) {
      oci::set_env(entries, entry);
    }
  }
  for (const std::string& entry : inputs.request) {
    std::string_view name = variable_name(entry);
    if (name.empty() || entry.find('\0') != std::string::npos) {
      return make_error(Kind::usage,
                        "environment variable " + quote(entry) + ": expected NAME=value");
    }
    if (name.size() < entry.size()) {
      oci::set_env(entries, entry);
    } else if (auto value = inputs.inherited.get(name)) {
      oci::set_env(entries, entry + "=" + std::string(*value));
    } else {
      std::erase_if(entries, [&](const auto& set) { return variable_name(set) == name; });
    }
  }
  if (!names_home(entries)) entries.push_back("HOME=" + std::string(inputs.home));
  return entries;
}

Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file) {
  std::vector<std::string> entries;
  size_t number = 0;
  for (std::string_view line : split(contents, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // As docker, drop blanks before the name, and keep the whole value.
    size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos || line[start] == '#') continue;
    line.remove_prefix(start);
    std::string_view name = variable_name(line);
    if (name.empty() || name.find_first_of(" \t") != std::string_view::npos) {
      return make_error(Kind::usage, std::string(file) + ": line " + std::to_string(number) + ": " +
                                         quote(name) + " is not a variable name");
    }
    entries.emplace_back(line);
  }
  return entries;
}

Result<std::vector<std::string>> read_env_file(const std::string& path) {
  std::string contents = TRY(sys::read_file(sys::cwd(), path));
  return parse_env_file(contents, path);
}

}  // namespace berth::engine
