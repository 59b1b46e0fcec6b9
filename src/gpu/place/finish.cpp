// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/finish.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "gpu/place/requests.hpp"
#include "sys/file/file.hpp"
#include "sys/file/node.hpp"

namespace berth::gpu {
namespace {

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

}  // namespace

bool keep_nodes(oci::ContainerEdits& edits) {
  bool less = !edits.mounts.empty() || !edits.hooks.empty() || !edits.links.empty() ||
              !edits.loader_entries.empty();
  oci::ContainerEdits kept;
  kept.env = std::move(edits.env);
  kept.device_nodes = std::move(edits.device_nodes);
  kept.additional_gids = std::move(edits.additional_gids);
  kept.net_devices = std::move(edits.net_devices);
  kept.intel_rdt = std::move(edits.intel_rdt);
  kept.freeze_device_nodes = edits.freeze_device_nodes;  // in /proc, which is the machine's
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
