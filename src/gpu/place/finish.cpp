// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/finish.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMaxText = size_t{64} << 10;
constexpr const char* kRequestParams = "/proc/driver/nvidia/params";
// NVIDIA's driver reads every file in this directory.
constexpr const char* kProfile = "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";

/// Makes a file with `text`; running containers keep the old file.
Result<std::string> publish(const std::string& state_dir, const std::string& name,
                            const std::string& text) {
  std::string directory = state_dir + "/gpu";
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  std::string path = directory + "/" + name;
  auto there = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxText));
  if (there != text) TRY(sys::replace_file(sys::cwd(), path, text, 0444));
  return path;
}

void bind_file(std::string source, const char* destination, oci::ContainerEdits& edits) {
  oci::Mount mount;
  mount.type = "bind";
  mount.source = std::move(source);
  mount.destination = destination;
  mount.options = {"bind", "ro", "nosuid", "nodev", "noexec"};
  edits.mounts.push_back(std::move(mount));
}

constexpr const char* kFinishParams = "/proc/driver/nvidia/params";
constexpr size_t kMaxParams = size_t{64} << 10;

bool is_given(const Gpu& gpu, const oci::ContainerEdits& edits) {
  return gpu.vendor == Vendor::nvidia &&
         std::ranges::any_of(edits.device_nodes, [&](const auto& node) {
           return node.type == "c" && node.major == gpu.node.major && node.minor == gpu.node.minor;
         });
}

void finish_compat(oci::ContainerEdits& edits, const FinishOptions& options) {
  if (!options.forward_compatibility) edits.compat.reset();
  if (!edits.compat || options.inventory == nullptr) return;
  for (const Gpu& gpu : options.inventory->gpus) {
    if (gpu.brand && is_given(gpu, edits)) edits.compat->brands.push_back(*gpu.brand);
  }
}

/// The minors of the nodes /dev/nvidia<minor> in `nodes`, one bit each; minors of 64 and more are
/// left out.
uint64_t minors_of(const std::vector<oci::DeviceNode>& nodes) {
  constexpr std::string_view kNodePrefix = "/dev/nvidia";
  uint64_t minors = 0;
  for (const oci::DeviceNode& node : nodes) {
    if (!node.path.starts_with(kNodePrefix)) continue;
    auto minor = parse_u64(std::string_view(node.path).substr(kNodePrefix.size()));
    if (minor && *minor < 64) minors |= uint64_t{1} << *minor;
  }
  return minors;
}

}  // namespace

std::string application_profile(uint64_t visible) {
  return fmt::format(
      R"({{"profiles": [{{"name": "_container_", "settings": ["EGLVisibleDGPUDevices", {}]}}], )"
      R"("rules": [{{"pattern": [], "profile": "_container_"}}]}})"
      "\n",
      visible);
}

Result<void> place_requests(oci::ContainerEdits& edits, const std::string& state_dir,
                            const std::string& params) {
  constexpr std::string_view kModify = "ModifyDeviceFiles: 1";
  size_t at = params.find(kModify);
  if (edits.freeze_device_nodes && at != std::string::npos) {
    std::string frozen = params;
    frozen[at + kModify.size() - 1] = '0';
    bind_file(TRY(publish(state_dir, "cdi-params", frozen)), kRequestParams, edits);
  }
  if (edits.application_profile) {
    uint64_t visible = minors_of(edits.device_nodes);
    std::string name = fmt::format("profile-{:x}", visible);
    bind_file(TRY(publish(state_dir, name, application_profile(visible))), kProfile, edits);
  }
  edits.freeze_device_nodes = edits.application_profile = false;
  return {};
}

bool keep_nodes(oci::ContainerEdits& edits) {
  bool less = !edits.mounts.empty() || !edits.hooks.empty() || !edits.links.empty() ||
              !edits.loader_entries.empty();
  oci::ContainerEdits kept;
  kept.env = std::move(edits.env);
  kept.device_nodes = std::move(edits.device_nodes);
  kept.additional_gids = std::move(edits.additional_gids);
  kept.net_devices = std::move(edits.net_devices);
  kept.intel_rdt = std::move(edits.intel_rdt);
  kept.freeze_device_nodes = edits.freeze_device_nodes;  // /proc is not of the image
  edits = std::move(kept);
  return less;
}

bool wants_inventory(const oci::ContainerEdits& edits) {
  return edits.compat.has_value();
}

namespace {

Result<sys::Fd> open_below(const std::string& path, const std::string& below) {
  if (below.empty()) return sys::open_at(sys::cwd(), path, O_PATH);
  sys::Fd root = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY));
  return sys::open_in_root(root, below, O_PATH);
}

}  // namespace

Result<void> finish_edits(oci::ContainerEdits& edits, const FinishOptions& options) {
  finish_compat(edits, options);
  if (!edits.freeze_device_nodes && !edits.application_profile) return {};
  std::string params;
  if (edits.freeze_device_nodes) {
    auto text = TRY(sys::read_file_if_exists(sys::cwd(), kFinishParams, kMaxParams));
    if (text) params = std::move(*text);
  }
  return place_requests(edits, options.state_dir, params);
}

HostFile look_at_host(const std::string& path, const std::string& below) {
  auto handle = open_below(path, below);
  if (!handle.ok()) return HostFile::absent;
  auto status = sys::stat_fd(*handle, path);
  return status.ok() && S_ISSOCK(status->st_mode) ? HostFile::socket : HostFile::other;
}

bool is_host_device(const std::string& path, const std::string& below, const oci::Device& device) {
  auto handle = open_below(path, below);
  if (!handle.ok()) return false;
  auto same = sys::is_device(*handle, device.type == "u" ? "c" : device.type,
                             static_cast<unsigned>(device.major),
                             static_cast<unsigned>(device.minor), path);
  return same.ok() && *same;
}

}  // namespace berth::gpu
