// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/requests.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMaxText = size_t{64} << 10;
constexpr const char* kRequestParams = "/proc/driver/nvidia/params";
// NVIDIA's drivers read every file of this directory.
constexpr const char* kProfile = "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";

/// Makes a file with that text; a running container keeps its old one.
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

}  // namespace

std::string application_profile(uint64_t visible) {
  return fmt::format(
      R"({{"profiles": [{{"name": "_container_", "settings": ["EGLVisibleDGPUDevices", {}]}}], )"
      R"("rules": [{{"pattern": [], "profile": "_container_"}}]}})"
      "\n",
      visible);
}

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

}  // namespace berth::gpu
