// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "base/text.hpp"
#include "doctor/gather_parts.hpp"
#include "gpu/probe/driver_capabilities.hpp"
#include "oci/cdi.hpp"
#include "yaml/read.hpp"

namespace berth::doctor {
namespace {

constexpr size_t kMost = 100;  // of anything that one finding lists

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

}  // namespace berth::doctor
