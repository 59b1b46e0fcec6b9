// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/user_mounts.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "scan/loader.hpp"

namespace berth::gpu {

namespace {

/// Without "//", "/./" and "/../", and without '/' at the end.
std::string tidy(const std::string& path) {
  bool is_tidy = path.starts_with('/') && !path.ends_with('/') && path.find("//") == path.npos &&
                 path.find("/.") == path.npos;
  if (is_tidy) return path;
  std::string normal = std::filesystem::path(path).lexically_normal();
  if (normal.ends_with('/')) normal.pop_back();
  return normal;
}

}  // namespace

std::vector<UserMount> user_mounts(const oci::Spec& spec, const RealPath& real_path) {
  std::vector<UserMount> found;
  for (const oci::Mount& mount : spec.mounts) {
    const auto& options = mount.options;
    bool is_bind = mount.type == "bind" || std::ranges::find(options, "bind") != options.end() ||
                   std::ranges::find(options, "rbind") != options.end();
    std::string path = tidy(mount.destination);
    // A mount that is not of the host matters only if it covers an earlier host mount.
    if (path.empty() || (!is_bind && found.empty())) continue;
    found.push_back({real_path(path), is_bind ? mount.source : ""});
  }
  return found;
}

const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path) {
  auto is_over = [&](const UserMount& one) {
    return path.starts_with(one.destination) &&
           (path.size() == one.destination.size() || path[one.destination.size()] == '/');
  };
  auto found = std::find_if(mounts.rbegin(), mounts.rend(), is_over);
  return found == mounts.rend() || found->source.empty() ? nullptr : &*found;
}

Result<std::string> choose_directory(const std::vector<UserMount>& mounts,
                                     const RealPath& real_path) {
  for (std::string_view place : scan::kDriverPlaces) {
    std::string directory = real_path(std::string(place));
    auto is_below = [&](const UserMount& one) {
      return !one.source.empty() && one.destination.starts_with(directory + "/");
    };
    bool is_taken =
        mount_over(mounts, directory) != nullptr || std::ranges::any_of(mounts, is_below);
    if (!is_taken) return std::string(place);
  }
  return make_error(
      Kind::unsupported,
      "no directory for the driver: '/usr/local/nvidia' and '/.berth/nvidia' are mounted",
      "other targets for these mounts, or --gpu-driver image");
}

Result<std::vector<std::string>> fit_places(std::vector<oci::Mount>& given,
                                            const std::vector<UserMount>& mounts,
                                            const RealPath& real_path, const LookAtHost& look) {
  std::vector<std::string> left_out;
  if (mounts.empty()) return left_out;
  std::vector<oci::Mount> kept;
  for (oci::Mount& mount : given) {
    std::string path = real_path(mount.destination);
    const UserMount* over = mount_over(mounts, path);
    bool has_place = over == nullptr || over->destination == path ||
                     look(over->source, path.substr(over->destination.size())) != HostFile::absent;
    if (has_place) {
      kept.push_back(std::move(mount));
    } else if (look(mount.source, "") == HostFile::socket) {
      left_out.push_back(mount.destination);
    } else {
      return make_error(Kind::denied,
                        "its CDI file mounts " + quote(mount.destination) +
                            ", which would have to be made in the mount at " +
                            quote(over->destination),
                        "--gpus, which finds another directory, or another target for that mount");
    }
  }
  given = std::move(kept);
  return left_out;
}

Result<void> check_devices(std::span<const oci::Device> devices,
                           const std::vector<UserMount>& mounts, const IsDevice& is_device) {
  for (const oci::Device& device : devices) {
    std::string path = tidy(device.path);
    const UserMount* over = mount_over(mounts, path);
    if (over == nullptr) continue;
    if (is_device(over->source, path.substr(over->destination.size()), device)) continue;
    return make_error(Kind::denied,
                      "device " + quote(path) + " is not in " + quote(over->source) +
                          ", which is mounted at " + quote(over->destination),
                      "another target for that mount");
  }
  return {};
}

std::string left_out_text(const std::vector<std::string>& places) {
  std::vector<std::string> quoted;
  for (const std::string& place : places) quoted.push_back(quote(place));
  return join(quoted, ", ") + ": something else is mounted there, ignoring";
}

}  // namespace berth::gpu
