// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/user_mounts.hpp"

#include <algorithm>
#include <filesystem>

#include "scan/loader_cache.hpp"

namespace berth::gpu {

std::vector<UserMount> user_mounts(const oci::Spec& spec) {
  std::vector<UserMount> found;
  for (const oci::Mount& mount : spec.mounts) {
    const auto& options = mount.options;
    bool is_bind = mount.type == "bind" ||
                   std::find(options.begin(), options.end(), "bind") != options.end() ||
                   std::find(options.begin(), options.end(), "rbind") != options.end();
    if (!is_bind || mount.destination == "/") continue;
    found.push_back({std::filesystem::path(mount.destination).lexically_normal(), mount.source});
  }
  return found;
}

const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path) {
  auto is_over = [&](const UserMount& one) {
    return path.starts_with(one.destination) &&
           (path.size() == one.destination.size() || path[one.destination.size()] == '/');
  };
  auto found = std::find_if(mounts.rbegin(), mounts.rend(), is_over);
  return found == mounts.rend() ? nullptr : &*found;
}

Result<std::string> choose_directory(const std::vector<UserMount>& mounts) {
  for (std::string_view place : scan::kDriverPlaces) {
    std::string directory(place);
    auto is_below = [&](const UserMount& one) {
      return one.destination.starts_with(directory + "/");
    };
    bool is_taken = mount_over(mounts, directory) != nullptr ||
                    std::any_of(mounts.begin(), mounts.end(), is_below);
    if (!is_taken) return directory;
  }
  return make_error(Kind::unsupported,
                    "no place for the driver: '/usr/local/nvidia' and '/.berth/nvidia' are mounted",
                    "another place for these mounts, or --gpu-driver image");
}

}  // namespace berth::gpu
