// SPDX-License-Identifier: Apache-2.0
// Checks the directories of images, containers and run state.
#include <array>

#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

constexpr uint64_t kLittleSpace = uint64_t{2} << 30;  // less than the size of a CUDA image
constexpr uint64_t kFewInodes = 50000;                // such an image has about that many files

Finding usable(const Place& place, std::string_view flag) {
  if (place.unusable) {
    return problem(to_line(*place.unusable), "another directory with " + std::string(flag));
  }
  if (place.file_system && place.file_system->read_only) {
    return problem(quote(place.existing) + " is mounted read-only",
                   "another directory with " + std::string(flag));
  }
  std::string on = place.file_system ? " on " + sys::file_system_name(place.file_system->type) : "";
  return ok(quote(place.path) + on);
}

Finding root(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (host.no_home) return problem(host.no_home->what, host.no_home->hint);
  return usable(host.root, "--root DIR");
}

Finding state(const Facts& facts) {
  if (facts.host.no_home) return not_applicable("nothing is known of it");
  return usable(facts.host.state, "--state DIR");
}

Finding space(const Facts& facts) {
  const auto& there = facts.host.root.file_system;
  if (!there) return not_applicable("nothing is known of it");
  if (there->free_bytes < kLittleSpace) {
    return warning("only " + human_bytes(there->free_bytes) + " are free below " +
                       quote(facts.host.root.existing),
                   "berth rmi IMAGE, or --root DIR");
  }
  if (there->total_inodes != 0 && there->free_inodes < kFewInodes) {
    return warning("only " + std::to_string(there->free_inodes) + " inodes are free below " +
                       quote(facts.host.root.existing),
                   "berth rmi IMAGE, or --root DIR");
  }
  return ok(human_bytes(there->free_bytes) + " free");
}

std::string flag_names(const sys::FileSystem& mounted) {
  std::vector<std::string> names;
  if (mounted.no_exec) names.emplace_back("noexec");
  if (mounted.no_suid) names.emplace_back("nosuid");
  if (mounted.no_dev) names.emplace_back("nodev");
  return join(names, ",");
}

// A container's root is an overlay with its own mount flags, independent of the mounts of the
// layers. A volume of driver files is bound from the store and keeps the flags of the store's
// mount. Nothing executable is bound from the state directory.
Finding mount_flags(const Facts& facts) {
  const auto& store = facts.host.root.file_system;
  if (!store) return not_applicable("nothing is known of it");
  if (store->no_exec) {
    return warning(quote(facts.host.root.existing) +
                       " is mounted noexec: with --gpu-driver volume the driver's files are there "
                       "and cannot be loaded",
                   "another --gpu-driver, or --root DIR on another file system");
  }
  std::string names = flag_names(*store);
  if (names.empty()) return ok("programs can be executed there");
  return ok(names + " of " + quote(facts.host.root.existing) +
            " does not affect containers, because their root is an overlay");
}

constexpr std::array kStorageChecks = {
    Check{"storage.root", root},
    Check{"storage.state", state},
    Check{"storage.space", space},
    Check{"storage.mount-flags", mount_flags},
};

}  // namespace

std::span<const Check> storage_checks() {
  return kStorageChecks;
}

}  // namespace berth::doctor
