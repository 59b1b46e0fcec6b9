// SPDX-License-Identifier: Apache-2.0
#include <linux/mount.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "plan/maker.hpp"

namespace berth::plan {
namespace {

constexpr uint32_t kTtyGroup = 5;

// Whether a mount may cover this file of procfs: lxcfs replaces these files, and no privileged
// process trusts them (runc has the same list).
bool may_cover_proc(std::string_view path) {
  static constexpr std::array<std::string_view, 10> kAllowed = {
      "/proc/cpuinfo", "/proc/diskstats",
      "/proc/meminfo", "/proc/stat",
      "/proc/swaps",   "/proc/uptime",
      "/proc/loadavg", "/proc/slabinfo",
      "/proc/net/dev", "/proc/sys/kernel/ns_last_pid"};
  return std::ranges::find(kAllowed, path) != kAllowed.end() || is_below(path, "/proc/driver");
}

std::string member(size_t mount, const char* name) {
  return "mounts[" + std::to_string(mount) + "]." + name;
}

// Whether a link may be made at `path`: the file systems of the kernel do not belong to the
// container.
bool may_be_linked(const std::string& path) {
  return path != "/" && !is_below(path, "/proc") && !is_below(path, "/sys");
}

}  // namespace

Result<void> Maker::root() {
  std::string path = spec_.root.path.starts_with("/") ? spec_.root.path
                                                      : container_.bundle + "/" + spec_.root.path;
  bool mounted = !spec_.mounts.empty() && tidy(spec_.mounts[0].destination) == "/";
  if (!mounted) {
    add(BindRoot{std::move(path)});
    return {};
  }
  const oci::Mount& mount = spec_.mounts[0];
  bool served = mount.type == "fuse-overlayfs";
  if (mount.type != "overlay" && !served) {
    return unsupported("mounts[0].type: expected 'overlay' or 'fuse-overlayfs' for the root, got " +
                       quote(mount.type));
  }
  MountOptions options = parse_mount_options(mount.options);
  MountOverlayRoot step;
  step.target = std::move(path);
  step.attributes = options.attributes;
  step.served = served;
  for (const std::string& option : options.data) {
    auto value = [&](std::string_view key) -> std::optional<std::string> {
      if (!option.starts_with(key)) return std::nullopt;
      return option.substr(key.size());
    };
    if (auto layer = value("lowerdir+=")) {
      step.lower.push_back(*layer);
    } else if (auto layers = value("lowerdir=")) {
      for (std::string_view one : split(*layers, ':')) step.lower.emplace_back(one);
    } else if (auto upper = value("upperdir=")) {
      step.upper = *upper;
    } else if (auto work = value("workdir=")) {
      step.work = *work;
    } else {
      step.options.push_back(option);
    }
  }
  if (step.lower.empty()) return usage("mounts[0].options: an overlay without lowerdir");
  if (step.upper.empty() != step.work.empty()) {
    return usage("mounts[0].options: upperdir and workdir need each other");
  }
  add(std::move(step));
  return {};
}

Result<void> Maker::mounts() {
  for (size_t i = 0; i < spec_.mounts.size(); ++i) {
    if (i == 0 && tidy(spec_.mounts[0].destination) == "/") continue;
    TRY(mount(i));
  }
  return {};
}

// runtime-spec config.md "idmap": "If uidMappings or gidMappings are specified for the mount, the
// runtime MUST use those values for the mount's mapping. If they are not specified, the runtime MAY
// use the container's user namespace mapping, otherwise an error MUST be returned."
Result<std::optional<IdMap>> Maker::id_map(size_t index, const MountOptions& options) const {
  const oci::Mount& mount = spec_.mounts[index];
  bool own = !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
  if (!own && !options.id_map) return std::optional<IdMap>();
  if (own && (mount.uid_mappings.empty() || mount.gid_mappings.empty())) {
    return usage(member(index, "uidMappings") + ": uidMappings and gidMappings need each other");
  }
  IdMap map;
  map.uids = own ? mount.uid_mappings : spec_.linux_.uid_mappings;
  map.gids = own ? mount.gid_mappings : spec_.linux_.gid_mappings;
  map.recursive = options.recursive_id_map;
  map.member = member(index, "options");
  if (!own) {
    for (const auto& space : spec_.linux_.namespaces) {
      if (space.type == "user") map.user_namespace = space.path;
    }
  }
  if (map.user_namespace.empty() && (map.uids.empty() || map.gids.empty())) {
    return usage(member(index, "options") +
                 ": idmap needs uidMappings and gidMappings, of the mount or of linux");
  }
  return std::optional<IdMap>(std::move(map));
}

Result<void> Maker::mount(size_t index) {
  const oci::Mount& mount = spec_.mounts[index];
  // runtime-spec config.md: "destination ... MUST be an absolute path"; version 1.2 tolerates a
  // relative path, which is relative to "/".
  std::string target = tidy(mount.destination);
  if (mount.destination.empty()) return usage(member(index, "destination") + ": empty");
  if (target == "/") {
    return usage(member(index, "destination") + ": '/' is for the first mount only");
  }
  if (is_below(target, "/proc") && target != "/proc" && !may_cover_proc(target)) {
    return make_error(Kind::denied, "config.json: " + member(index, "destination") +
                                        ": nothing may be mounted over procfs at " + quote(target));
  }
  MountOptions options = parse_mount_options(mount.options);
  bool bind = options.bind || mount.type == "bind";
  std::optional<IdMap> map = TRY(id_map(index, options));
  if (options.remount) {
    if (map) return usage(member(index, "options") + ": idmap is for a new mount");
    add(ChangeMount{std::move(target), options.attributes, !bind, mount.type, mount.source,
                    options.data});
    return {};
  }
  if (options.copy_up && (bind || mount.type != "tmpfs")) {
    return usage(member(index, "options") + ": tmpcopyup is for a tmpfs");
  }
  if (options.links != BindLinks() && (!bind || map)) {
    return usage(member(index, "options") +
                 ": src-nofollow, dest-nofollow and copy-symlink are for " +
                 "a bind without idmap");
  }
  if (!bind && mount.type == "overlay" && mount_layers(target, options)) {
    if (map) return usage(member(index, "options") + ": idmap is not for layers");
    return {};
  }
  if (!bind) return mount_kernel_file_system(index, std::move(options));
  if (mount.source.empty()) return usage(member(index, "source") + ": empty for a bind");
  std::string source =
      mount.source.starts_with("/") ? mount.source : container_.bundle + "/" + mount.source;
  // A new user namespace gets the mounts of the host as slaves, never as peers.
  const auto& wish = options.attributes.propagation;
  bool peer = spec_.linux_.rootfs_propagation.ends_with("shared") && !has_namespace("user") &&
              (!wish || wish->type == Propagation::shared) && options.links == BindLinks();
  add(MountBind{std::move(source), std::move(target), options.recursive_bind || !options.bind,
                options.attributes, std::move(map), peer, options.links});
  return {};
}

// Handles only our own mount type for layers: an overlay in the config of another engine is an
// ordinary file system.
bool Maker::mount_layers(const std::string& target, const MountOptions& options) {
  constexpr std::string_view kLayer = "lowerdir+=";
  MountLayers step{target, {}, {}, options.attributes};
  step.attributes.set |= MOUNT_ATTR_RDONLY;
  step.attributes.clear &= ~uint64_t{MOUNT_ATTR_RDONLY};
  for (const std::string& option : options.data) {
    if (option.starts_with(kLayer)) {
      step.lower.push_back(option.substr(kLayer.size()));
    } else if (option.starts_with("upperdir=") || option.starts_with("workdir=")) {
      return false;
    } else {
      step.options.push_back(option);
    }
  }
  if (step.lower.empty()) return false;
  add(std::move(step));
  return true;
}

// Whether mount points, or the devices of /dev, are made in this mount after mounting it.
bool Maker::is_filled_later(size_t index) const {
  std::string target = tidy(spec_.mounts[index].destination);
  bool filled = target == "/dev";
  for (size_t i = index + 1; i < spec_.mounts.size(); ++i) {
    std::string other = tidy(spec_.mounts[i].destination);
    if (other == target) return false;  // hidden by a later mount
    filled = filled || is_below(other, target);
  }
  return filled;
}

Result<void> Maker::mount_kernel_file_system(size_t index, MountOptions options) {
  const oci::Mount& mount = spec_.mounts[index];
  std::string target = tidy(mount.destination);
  if (mount.type.empty() || mount.type == "none") {
    return usage(member(index, "type") + ": empty, and no option 'bind'");
  }
  if (mount.type == "cgroup" || mount.type == "cgroup2") {
    if (!facts_.has_cgroups) {
      plan_.warnings.push_back("no cgroup file system on this machine: ignoring the mount of " +
                               quote(target));
      return {};
    }
    if (options.id_map) return usage(member(index, "options") + ": idmap is not for cgroups");
    cgroup_namespace();
    // A mount of systemd's named hierarchy indicates that systemd in the container expects version
    // 1. It would otherwise use the version 2 hierarchy of a hybrid system and fail, since it must
    // not write there.
    const std::string own = target + "/systemd";
    bool has_systemd = std::ranges::any_of(
        spec_.mounts, [&](const auto& m) { return tidy(m.destination) == own; });
    add(MountCgroups{std::move(target), mount.type == "cgroup2", options.attributes, has_systemd});
    return {};
  }
  if (mount.type == "sysfs" && in_user_namespace() && !creates("network")) {
    // The kernel allows a new sysfs mount only to the owner of the network namespace.
    MountAttributes attributes = options.attributes;
    attributes.recursive_set |= MOUNT_ATTR_RDONLY | (attributes.set & ~MOUNT_ATTR__ATIME);
    attributes.set = attributes.clear = 0;
    attributes.propagation = PropagationChange{Propagation::slave, true};
    add(MountBind{"/sys", std::move(target), true, attributes});
    return {};
  }
  if (mount.type == "devpts" && !facts_.tty_group_mapped) {
    std::erase(options.data, "gid=" + std::to_string(kTtyGroup));
  }
  // The kernel labels its own file systems itself.
  bool labelled = mount.type != "proc" && mount.type != "sysfs" && mount.type != "mqueue";
  if (labelled && !spec_.linux_.mount_label.empty()) {
    options.data.push_back("context=" + spec_.linux_.mount_label);
  }
  MountFilesystem step;
  step.type = mount.type;
  step.source = mount.source.empty() ? mount.type : mount.source;
  step.data = std::move(options.data);
  step.attributes = options.attributes;
  step.copy_up = options.copy_up;
  step.id_map = TRY(id_map(index, options));
  if (mount.type == "tmpfs" && (step.attributes.set & MOUNT_ATTR_RDONLY) &&
      is_filled_later(index)) {
    step.attributes.set &= ~uint64_t{MOUNT_ATTR_RDONLY};
    filled_.push_back(target);
  }
  // If the image had a link at /proc, the kernel's files would appear elsewhere, and a runtime that
  // later writes to "/proc/self/attr" would write to a file of the image.
  step.exact = mount.type == "proc" || mount.type == "sysfs" || target == "/proc" ||
               target == "/sys" || target == "/dev";
  step.target = std::move(target);
  add(std::move(step));
  return {};
}

void Maker::close_filled() {
  MountAttributes readonly;
  readonly.set = MOUNT_ATTR_RDONLY;
  for (const auto& target : filled_) add(ChangeMount{target, readonly});
}

bool Maker::host_owns_dev() const {
  return std::ranges::any_of(spec_.mounts, [](const oci::Mount& mount) {
    bool bind = mount.type == "bind" || std::ranges::any_of(mount.options, [](const auto& word) {
                  return word == "bind" || word == "rbind";
                });
    return bind && tidy(mount.destination) == "/dev";
  });
}

const std::string& Maker::host_path(const oci::Device& device) const {
  auto source = spec_.annotations.find(std::string(oci::kDeviceSourceAnnotation) + device.path);
  return source == spec_.annotations.end() ? device.path : source->second;
}

void Maker::device(const oci::Device& device) {
  auto major = static_cast<uint32_t>(device.major);
  auto minor = static_cast<uint32_t>(device.minor);
  std::string type = device.type == "u" ? "c" : device.type;
  if (in_user_namespace() && type != "p") {
    add(BindNode{host_path(device), device.path, std::move(type), major, minor});
    return;
  }
  add(MakeNode{device.path, std::move(type), major, minor, device.file_mode.value_or(0666) & 07777,
               device.uid.value_or(0), device.gid.value_or(0)});
}

Result<void> Maker::devices() {
  // A bind of the host's /dev already has all devices, and must not be changed.
  if (host_owns_dev()) return {};
  static const std::array<oci::Device, 6> kDefaults = {
      oci::Device{"c", "/dev/null", 1, 3, 0666, 0, 0},
      oci::Device{"c", "/dev/zero", 1, 5, 0666, 0, 0},
      oci::Device{"c", "/dev/full", 1, 7, 0666, 0, 0},
      oci::Device{"c", "/dev/random", 1, 8, 0666, 0, 0},
      oci::Device{"c", "/dev/urandom", 1, 9, 0666, 0, 0},
      oci::Device{"c", "/dev/tty", 5, 0, 0666, 0, 0}};
  const auto& asked = spec_.linux_.devices;
  for (const auto& one : kDefaults) {
    bool replaced = std::ranges::any_of(
        asked, [&](const oci::Device& other) { return tidy(other.path) == one.path; });
    if (!replaced) device(one);
  }
  for (oci::Device one : asked) {
    bool is_absolute = one.path.starts_with("/");
    // As in runc and crun, a path with a slash at the end is accepted, too.
    one.path = tidy(one.path);
    if (!is_absolute || one.path == "/") {
      return usage("linux.devices: expected an absolute path, got " + quote(one.path));
    }
    if (one.type != "c" && one.type != "b" && one.type != "u" && one.type != "p") {
      return usage("linux.devices: unknown type " + quote(one.type));
    }
    // Engines that pass all devices of the host include /dev/ptmx. A bind of the host's node would
    // not open terminals of the container; the link below does.
    if (one.path == "/dev/ptmx") continue;
    device(one);
  }
  add(MakeLink{"/dev/ptmx", "pts/ptmx"});
  add(MakeLink{"/dev/fd", "/proc/self/fd"});
  add(MakeLink{"/dev/core", "/proc/kcore"});
  add(MakeLink{"/dev/stdin", "/proc/self/fd/0"});
  add(MakeLink{"/dev/stdout", "/proc/self/fd/1"});
  add(MakeLink{"/dev/stderr", "/proc/self/fd/2"});
  return {};
}

void Maker::masks() {
  auto tidied = [](std::vector<std::string> paths) {
    std::ranges::transform(paths, paths.begin(), tidy);
    // Use each path only once.
    std::set<std::string> seen;
    std::erase_if(paths, [&](const std::string& path) { return !seen.insert(path).second; });
    return paths;
  };
  if (!spec_.linux_.readonly_paths.empty()) add(MakeReadonly{tidied(spec_.linux_.readonly_paths)});
  if (!spec_.linux_.masked_paths.empty()) add(MaskPaths{tidied(spec_.linux_.masked_paths)});
}

Result<void> Maker::own_root() {
  TRY(root());
  TRY(mounts());
  TRY(devices());
  links();
  loader_files();
  console(true);
  close_filled();
  masks();
  return {};
}

void Maker::shared_root() {
  EnterSharedRoot step;
  step.path = spec_.root.path.starts_with("/") ? spec_.root.path
                                               : container_.bundle + "/" + spec_.root.path;
  for (const auto& space : spec_.linux_.namespaces) {
    if (space.type == "mount") step.mount_namespace = space.path;
  }
  add(std::move(step));
  console(false);
}

Result<void> Maker::enter_root() {
  EnterRoot step;
  step.readonly = spec_.root.readonly;
  if (step.readonly && spec_.process) step.directory = tidy(process_.cwd);
  const std::string& wish = spec_.linux_.rootfs_propagation;
  if (!wish.empty()) {
    MountOptions options = parse_mount_options({wish});
    if (!options.attributes.propagation) {
      return usage("linux.rootfsPropagation: unknown value " + quote(wish));
    }
    step.propagation = options.attributes.propagation;
  }
  add(step);
  return {};
}

void Maker::links() {
  for (auto at = spec_.annotations.lower_bound(std::string(oci::kLinkAnnotation));
       at != spec_.annotations.end() && at->first.starts_with(oci::kLinkAnnotation); ++at) {
    std::string_view path = std::string_view(at->first).substr(oci::kLinkAnnotation.size());
    std::string link = tidy(path);
    if (!path.starts_with('/') || path.ends_with('/') || !may_be_linked(link) ||
        at->second.empty()) {
      plan_.warnings.push_back("annotations: " + quote(at->first) +
                               ": no link of a root, ignoring");
      continue;
    }
    add(ReplaceLink{std::move(link), at->second});
  }
}

void Maker::loader_files() {
  auto lines = spec_.annotations.find(std::string(oci::kLoaderCacheAnnotation));
  if (lines != spec_.annotations.end()) loader_entries_ = oci::loader_entries_of(lines->second);
  auto compat = spec_.annotations.find(std::string(oci::kCompatAnnotation));
  if (compat != spec_.annotations.end()) compat_ = oci::compat_request_of(compat->second);
  if (fills_loader_files()) add(PlaceLoaderFiles{!spec_.root.readonly});
}

void Maker::fill_loader_files() {
  if (fills_loader_files()) add(FillLoaderFiles{std::move(loader_entries_), std::move(compat_)});
}

}  // namespace berth::plan
