// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "doctor/gather_parts.hpp"
#include "json/fields.hpp"
#include "policy/site/toml.hpp"

namespace berth::doctor {
namespace {

// The content of the toolkit's unmodified file.
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
    {"nvidia-container-runtime.runtimes", R"(["docker-runc","runc","crun"])"},
    {"nvidia-container-runtime.modes.cdi.annotation-prefixes", R"(["cdi.k8s.io/"])"},
    {"nvidia-container-runtime.modes.cdi.default-kind", "nvidia.com/gpu"},
    {"nvidia-container-runtime.modes.cdi.spec-dirs", R"(["/etc/cdi","/var/run/cdi"])"},
    {"nvidia-container-runtime.modes.csv.mount-spec-path",
     "/etc/nvidia-container-runtime/host-files-for-container.d"},
    {"nvidia-container-runtime.modes.legacy.cuda-compat-mode", "ldconfig"},
    {"nvidia-container-runtime-hook.path", "nvidia-container-runtime-hook"},
    {"nvidia-container-runtime-hook.skip-mode-detection", "false"},
    {"nvidia-ctk.path", "nvidia-ctk"},
    {"nvidia-container-cli.debug", ""},
    {"nvidia-container-runtime.debug", ""},
}};

// Strings are compared by their text, others by their JSON, which is TOML too.
bool is_default(const std::string& key, const json::Value& value) {
  std::string text = value.string() != nullptr ? *value.string() : json::write(value);
  return std::ranges::any_of(
      kDefaults, [&](const auto& known) { return known.first == key && known.second == text; });
}

}  // namespace

Result<std::vector<std::string>> changed_toolkit_keys(std::string_view text,
                                                      std::string_view document) {
  std::vector<std::string> changed;
  for (const policy::TomlEntry& entry : TRY(policy::parse_toml(text, document))) {
    std::string key = key_of(entry);
    if (entry.value.object() != nullptr || is_default(key, entry.value)) continue;
    changed.push_back(escape_controls(key + " = " + json::write(entry.value)));
  }
  return changed;
}

}  // namespace berth::doctor
