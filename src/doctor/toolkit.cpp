// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "doctor/gather_parts.hpp"

namespace berth::doctor {
namespace {

// What the toolkit's own file holds when nobody has touched it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kDefaults = {{
    {"disable-require", "false"},
    {"supported-driver-capabilities", "compat32,compute,display,graphics,ngx,utility,video"},
    {"swarm-resource", "DOCKER_RESOURCE_GPU"},
    {"accept-nvidia-visible-devices-envvar-when-unprivileged", "true"},
    {"accept-nvidia-visible-devices-as-volume-mounts", "false"},
    {"nvidia-container-cli.environment", "[]"},
    {"nvidia-container-cli.ldconfig", "@/sbin/ldconfig"},
    {"nvidia-container-cli.load-kmods", "true"},
    {"nvidia-container-cli.no-cgroups", "false"},
    {"nvidia-container-runtime.log-level", "info"},
    {"nvidia-container-runtime.mode", "auto"},
    {"nvidia-container-runtime.runtimes", "[docker-runc, runc, crun]"},
    {"nvidia-container-runtime.modes.cdi.annotation-prefixes", "[cdi.k8s.io/]"},
    {"nvidia-container-runtime.modes.cdi.default-kind", "nvidia.com/gpu"},
    {"nvidia-container-runtime.modes.cdi.spec-dirs", "[/etc/cdi, /var/run/cdi]"},
    {"nvidia-container-runtime.modes.csv.mount-spec-path",
     "/etc/nvidia-container-runtime/host-files-for-container.d"},
    {"nvidia-container-runtime.modes.legacy.cuda-compat-mode", "ldconfig"},
    {"nvidia-container-runtime-hook.path", "nvidia-container-runtime-hook"},
    {"nvidia-container-runtime-hook.skip-mode-detection", "false"},
    {"nvidia-ctk.path", "nvidia-ctk"},
    {"nvidia-container-cli.debug", ""},
    {"nvidia-container-runtime.debug", ""},
}};

bool is_default(std::string_view key, std::string_view value) {
  return std::any_of(kDefaults.begin(), kDefaults.end(), [&](const auto& known) {
    return known.first == key && known.second == value;
  });
}

std::string without_quotes(std::string_view text) {
  std::string out(trim(text));
  std::erase(out, '"');
  return out;
}

}  // namespace

std::vector<std::string> changed_toolkit_keys(std::string_view text) {
  std::vector<std::string> changed;
  std::string section;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (line.starts_with('[') && line.ends_with(']')) {
      section = std::string(line.substr(1, line.size() - 2)) + ".";
      continue;
    }
    size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    std::string key = section + std::string(trim(line.substr(0, equals)));
    std::string value = without_quotes(line.substr(equals + 1));
    if (!is_default(key, value)) changed.push_back(key + " = " + escape_controls(value));
  }
  return changed;
}

}  // namespace berth::doctor
