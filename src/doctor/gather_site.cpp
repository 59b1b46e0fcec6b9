// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "doctor/gather.hpp"
#include "gpu/probe/driver_capabilities.hpp"
#include "json/fields.hpp"
#include "oci/cdi.hpp"
#include "policy/site/toml.hpp"
#include "yaml/read.hpp"

namespace berth::doctor {
namespace {

constexpr size_t kMost = 100;  // the most items that one finding lists

bool about_gpus(const oci::cdi::Spec& spec) {
  return spec.kind.starts_with("nvidia.com/") || spec.kind.starts_with("amd.com/") ||
         spec.kind.starts_with("intel.com/") || spec.kind.ends_with("/gpu");
}

Result<oci::cdi::Spec> read_spec(const std::string& text, const std::string& path) {
  if (path.ends_with(".json")) return oci::cdi::read_json(text, path);
  return oci::cdi::from_document(TRY(yaml::parse(text, path)), path);
}

void add(std::string text, std::vector<std::string>& list) {
  bool known = std::ranges::find(list, text) != list.end();
  if (!known && list.size() < kMost) list.push_back(std::move(text));
}

void check_mount(const gpu::DriverRoot& root, const oci::cdi::Mount& mount, CdiFile& file) {
  std::string_view name = std::string_view(mount.host_path);
  name.remove_prefix(name.rfind('/') + 1);
  if (std::string_view version = gpu::driver_version_of(name); !version.empty()) {
    if (!gpu::library_capabilities(name.substr(0, name.find(".so."))).empty()) {
      add(std::string(version), file.driver_versions);
    }
  }
  bool virtual_type = !mount.type.empty() && mount.type != "bind";
  if (virtual_type || !mount.host_path.starts_with('/')) return;
  if (!root.find(mount.host_path)) add(mount.host_path, file.missing_files);
}

void check_node(const gpu::DriverRoot& root, const oci::cdi::DeviceNode& node, CdiFile& file) {
  const std::string& path = node.host_path.empty() ? node.path : node.host_path;
  auto info = root.stat_machine(path);
  if (!info) {
    add(fmt::format("{} is not there", quote(path)), file.stale_nodes);
    return;
  }
  if (!node.major || !S_ISCHR(info->st_mode)) return;
  auto real = fmt::format("{}:{}", major(info->st_rdev), minor(info->st_rdev));
  auto said = fmt::format("{}:{}", *node.major, node.minor.value_or(0));
  if (real != said) {
    add(fmt::format("{} is {}, the file says {}", quote(path), real, said), file.stale_nodes);
  }
}

void check_edits(const gpu::DriverRoot& root, const oci::cdi::Edits& edits, CdiFile& file) {
  for (const oci::cdi::Mount& mount : edits.mounts) check_mount(root, mount, file);
  for (const oci::cdi::DeviceNode& node : edits.device_nodes) check_node(root, node, file);
}

std::optional<CdiFile> look_at(const gpu::DriverRoot& root, const std::string& path) {
  CdiFile file;
  file.path = root.machine_path(path);
  auto text = root.read_machine(path);
  if (!text.ok()) file.error = text.error();
  if (!text.ok() || !*text) return file;
  auto spec = read_spec(**text, file.path);
  if (!spec.ok()) {
    file.error = spec.error();
    return file;
  }
  if (!about_gpus(*spec)) return std::nullopt;
  file.kind = spec->kind;
  check_edits(root, spec->edits, file);
  for (const oci::cdi::Device& device : spec->devices) check_edits(root, device.edits, file);
  return file;
}

// The keys and values of the toolkit's default config.toml.
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

// Strings are compared as they are, other values by their JSON form, which is the same in TOML.
bool is_default(const std::string& key, const json::Value& value) {
  std::string text = value.string() != nullptr ? *value.string() : json::write(value);
  return std::ranges::any_of(
      kDefaults, [&](const auto& known) { return known.first == key && known.second == text; });
}

}  // namespace

std::vector<CdiFile> gather_cdi_files(const gpu::DriverRoot& root,
                                      const std::vector<std::string>& directories) {
  std::vector<CdiFile> out;
  for (const std::string& directory : directories) {
    auto names = root.list_machine(directory);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      bool wanted = name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml");
      if (!wanted || out.size() >= kMost) continue;
      auto file = look_at(root, directory + "/" + name);
      if (file) out.push_back(std::move(*file));
    }
  }
  return out;
}

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
