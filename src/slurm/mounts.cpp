// SPDX-License-Identifier: Apache-2.0
#include "slurm/mounts.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::slurm {
namespace {

constexpr std::array<std::string_view, 6> kPropagation = {"private", "rprivate", "slave",
                                                          "rslave",  "shared",   "rshared"};

Error invalid(std::string_view entry, std::string why) {
  return make_error(Kind::usage, "--container-mounts: " + quote(entry) + ": " + std::move(why),
                    "SRC:DST[:ro+rprivate]");
}

/// Whether a part of `path` is "..": the destination would differ from its text.
bool climbs(std::string_view path) {
  auto parts = split(path, '/');
  return std::ranges::find(parts, "..") != parts.end();
}

Result<void> take_flag(std::string_view flag, std::string_view entry, Mount& mount) {
  bool restricts = flag == "nosuid" || flag == "nodev" || flag == "noexec";
  if (mount.kind == Mount::Kind::tmpfs || restricts) {
    mount.options.emplace_back(flag);
  } else if (flag == "ro" || flag == "rw") {
    mount.read_only = flag == "ro";
  } else if (flag == "bind" || flag == "rbind") {
    mount.recursive = flag == "rbind";
  } else if (std::ranges::find(kPropagation, flag) != kPropagation.end()) {
    mount.propagation = flag;
  } else {
    return invalid(entry, "unknown flag " + quote(flag));
  }
  return {};
}

Result<Mount> parse_mount(std::string_view entry, std::string_view working_directory) {
  auto parts = split(entry, ':');
  if (parts.size() > 3) return invalid(entry, "more than three parts");
  std::string_view source = parts[0];
  std::string_view destination = parts.size() > 1 ? parts[1] : source;
  Mount mount;
  if (source == "tmpfs") {
    mount.kind = Mount::Kind::tmpfs;
  } else if (source == "umount") {
    mount.kind = Mount::Kind::none;
  } else if (source.starts_with('.') && working_directory.empty()) {
    return invalid(entry, "the working directory has been removed");
  } else if (source.starts_with('.')) {
    mount.source = std::string(working_directory) + "/" + std::string(source);
  } else if (source.starts_with('/')) {
    mount.source = source;
  } else {
    return invalid(
        entry, "the source must be a path that begins with '/' or '.', \"tmpfs\" or \"umount\"");
  }
  bool same_place = parts.size() == 1 && source.starts_with('.');
  mount.destination = same_place ? mount.source : std::string(destination);
  if (!mount.destination.starts_with('/')) return invalid(entry, "the target is not absolute");
  if (climbs(destination) && !same_place) return invalid(entry, "the target has '..' in it");
  if (parts.size() < 3) return mount;
  for (std::string_view flag : split(parts[2], '+')) {
    if (flag.empty()) return invalid(entry, "a flag is empty");
    TRY(take_flag(flag, entry, mount));
  }
  return mount;
}

}  // namespace

Result<std::vector<Mount>> parse_mounts(std::string_view text, std::string_view working_directory) {
  std::vector<Mount> mounts;
  for (std::string_view entry : split(text, ',')) {
    mounts.push_back(TRY(parse_mount(entry, working_directory)));
  }
  return mounts;
}

}  // namespace berth::slurm
