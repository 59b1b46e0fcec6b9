// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <linux/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "oci/capabilities.hpp"
#include "oci/edit.hpp"
#include "plan/attributes.hpp"
#include "plan/cgroup_owner.hpp"

namespace berth::plan {
namespace {

constexpr uint32_t kTtyGroup = 5;

constexpr std::array<std::string_view, 8> kNamespaces = {"cgroup", "ipc",  "mount", "network",
                                                         "pid",    "time", "user",  "uts"};

Error usage(std::string what) {
  return make_error(Kind::usage, "config.json: " + std::move(what));
}

Error unsupported(std::string what) {
  return make_error(Kind::unsupported, "config.json: " + std::move(what));
}

bool is_below(std::string_view path, std::string_view directory) {
  return path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with("/"));
}

// "/a//b/./c/../d/" → "/a/b/d". By the text alone, so that what is checked here is what is opened
// later; links are followed inside the root then.
std::string tidy(std::string_view path) {
  std::string out;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

/// Collects the steps of one container; each method is one subject of the spec, and the order of
/// their calls in make() is the order of execution.
class Maker {
 public:
  Maker(const oci::Spec& spec, const Container& container, const HostFacts& facts)
      : spec_(spec),
        process_(spec.process ? *spec.process : kNoProcess),
        container_(container),
        facts_(facts) {}

  Result<void> check();
  Result<void> check_process();
  Result<void> check_no_mounts() const;
  Result<void> own_root();
  void shared_root();
  Result<void> cgroup();
  Result<void> spawn();
  Result<void> root();
  Result<void> mounts();
  Result<void> devices();
  void console(bool named);
  Result<void> clocks();
  Result<void> resctrl();
  Result<void> labels();
  void oom_score();
  Result<void> attributes();
  Result<void> affinity();
  bool has_own_root() const { return creates("mount"); }
  void isolate_mounts() { add(IsolateMounts{}); }
  void join_container() {
    add(JoinContainer{});
    if (container_.new_keyring) add(MakeKeyring{});
  }
  /// Read-only tmpfs are writable while mount points and devices are made in them.
  void close_filled();
  void masks();
  Result<void> interfaces();
  Result<void> kernel_settings();
  Result<void> hooks(const char* stage, const std::vector<oci::Hook>& hooks);
  Result<void> enter_root();
  Result<void> limits();
  void identity();
  void find_program();
  void await_start();
  void program();

  /// As late as possible: until here the child works while the parent puts it into its cgroups.
  void cgroup_namespace();

  Plan take() { return std::move(plan_); }

 private:
  bool creates(std::string_view type) const {
    for (const auto& space : spec_.linux_.namespaces) {
      if (space.type == type) return space.path.empty();
    }
    return false;
  }
  bool has_namespace(std::string_view type) const {
    return std::any_of(spec_.linux_.namespaces.begin(), spec_.linux_.namespaces.end(),
                       [&](const oci::Namespace& space) { return space.type == type; });
  }
  bool in_user_namespace() const { return facts_.user_namespace || has_namespace("user"); }
  Result<void> mount(size_t index);
  Result<void> mount_kernel_file_system(size_t index, MountOptions options);
  Result<std::optional<IdMap>> id_map(size_t index, const MountOptions& options) const;
  bool is_filled_later(size_t index) const;
  void device(const oci::Device& device);
  bool host_owns_dev() const;
  uint64_t capability_set(const std::vector<std::string>& names, const char* member);
  template <class T>
  void add(T step) {
    plan_.steps.emplace_back(std::move(step));
  }

  static const oci::Process kNoProcess;

  const oci::Spec& spec_;
  const oci::Process& process_;
  const Container& container_;
  const HostFacts& facts_;
  Plan plan_;
  bool in_cgroup_namespace_ = false;
  std::vector<std::string> filled_;
};

const oci::Process Maker::kNoProcess = [] {
  oci::Process process;
  process.cwd = "/";
  return process;
}();

Result<void> Maker::check_process() {
  const auto& process = process_;
  if (process.args.empty()) return usage("process.args: empty");
  if (process.args[0].empty()) return usage("process.args[0]: empty");
  if (!process.cwd.starts_with("/")) {
    return usage("process.cwd: expected an absolute path, got " + quoted(process.cwd));
  }
  return {};
}

// What is mounted in a namespace that others share would be there for them too, and stay.
Result<void> Maker::check_no_mounts() const {
  const auto& on_linux = spec_.linux_;
  const std::pair<const char*, bool> kMembers[] = {
      {"mounts", !spec_.mounts.empty()},
      {"root.readonly", spec_.root.readonly},
      {"linux.devices", !on_linux.devices.empty()},
      {"linux.maskedPaths", !on_linux.masked_paths.empty()},
      {"linux.readonlyPaths", !on_linux.readonly_paths.empty()},
      {"linux.rootfsPropagation", !on_linux.rootfs_propagation.empty()},
  };
  for (const auto& [name, is_there] : kMembers) {
    if (is_there) return usage(std::string(name) + ": needs a new mount namespace");
  }
  return {};
}

Result<void> Maker::check() {
  // runtime-spec config.md: process is "REQUIRED when start is called", and not before.
  if (spec_.process) {
    TRY(check_process());
  } else if (!container_.await_start) {
    return usage("process: missing");
  }
  if (spec_.root.path.empty()) return usage("root.path: empty");
  if (!spec_.linux_.mount_label.empty() && !facts_.selinux) {
    return unsupported("linux.mountLabel: SELinux is not enabled on this machine");
  }
  std::set<std::string> seen;
  for (const auto& space : spec_.linux_.namespaces) {
    if (std::find(kNamespaces.begin(), kNamespaces.end(), space.type) == kNamespaces.end()) {
      return usage("linux.namespaces: unknown type " + quoted(space.type));
    }
    if (!seen.insert(space.type).second) {
      return usage("linux.namespaces: " + quoted(space.type) + " is there twice");
    }
  }
  if (!creates("mount")) TRY(check_no_mounts());
  if (!spec_.hostname.empty() && !has_namespace("uts")) {
    return usage("hostname: needs a uts namespace");
  }
  if (!spec_.domainname.empty() && !has_namespace("uts")) {
    return usage("domainname: needs a uts namespace");
  }
  bool mapped = !spec_.linux_.uid_mappings.empty() || !spec_.linux_.gid_mappings.empty();
  if (mapped && !has_namespace("user")) {
    return usage("linux.uidMappings: needs a user namespace");
  }
  if (creates("user") && (spec_.linux_.uid_mappings.empty() || spec_.linux_.gid_mappings.empty())) {
    return usage("linux.uidMappings: missing for a new user namespace");
  }
  return {};
}

Result<void> Maker::cgroup() {
  if (!facts_.has_cgroups || !container_.make_cgroup) return {};
  const std::string& path = spec_.linux_.cgroups_path;
  MakeCgroup step;
  if (container_.systemd == SystemdManager::none) {
    step.path = path.empty() ? "/berth-" + container_.id : path;
  } else {
    step.scope = TRY_CTX(parse_systemd_scope(path, container_.id, container_.systemd),
                         "config.json: linux.cgroupsPath");
  }
  if (spec_.linux_.resources) step.resources = *spec_.linux_.resources;
  step.owner = cgroup_owner(spec_);
  add(std::move(step));
  return {};
}

Result<void> Maker::spawn() {
  Spawn step;
  for (const auto& space : spec_.linux_.namespaces) {
    if (space.path.empty()) {
      step.created.push_back(space.type);
    } else if (!space.path.starts_with("/")) {
      return usage("linux.namespaces: expected an absolute path, got " + quoted(space.path));
    } else {
      step.joined.push_back(space);
    }
  }
  if (creates("user")) {  // one that is joined has its ids already, whatever is said beside it
    step.uid_mappings = spec_.linux_.uid_mappings;
    step.gid_mappings = spec_.linux_.gid_mappings;
  }
  add(std::move(step));
  if (container_.new_keyring) add(MakeKeyring{});
  return {};
}

Result<void> Maker::root() {
  std::string path = spec_.root.path.starts_with("/") ? spec_.root.path
                                                      : container_.bundle + "/" + spec_.root.path;
  bool mounted = !spec_.mounts.empty() && tidy(spec_.mounts[0].destination) == "/";
  if (!mounted) {
    add(BindRoot{std::move(path)});
    return {};
  }
  const oci::Mount& mount = spec_.mounts[0];
  if (mount.type != "overlay") {
    return unsupported("mounts[0].type: expected 'overlay' for the root, got " +
                       quoted(mount.type));
  }
  MountOptions options = parse_mount_options(mount.options);
  MountOverlayRoot step;
  step.target = std::move(path);
  step.attributes = options.attributes;
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

std::string search_path(const std::vector<std::string>& env) {
  constexpr std::string_view kName = "PATH=";
  for (const auto& assignment : env) {
    if (assignment.starts_with(kName)) return assignment.substr(kName.size());
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// What may lie over a file of procfs: lxcfs replaces these, and nothing of them is believed by a
// privileged process (runc keeps the same list).
bool may_cover_proc(std::string_view path) {
  static constexpr std::array<std::string_view, 10> kAllowed = {
      "/proc/cpuinfo", "/proc/diskstats",
      "/proc/meminfo", "/proc/stat",
      "/proc/swaps",   "/proc/uptime",
      "/proc/loadavg", "/proc/slabinfo",
      "/proc/net/dev", "/proc/sys/kernel/ns_last_pid"};
  return std::find(kAllowed.begin(), kAllowed.end(), path) != kAllowed.end() ||
         is_below(path, "/proc/driver");
}

std::string member(size_t mount, const char* name) {
  return "mounts[" + std::to_string(mount) + "]." + name;
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
  // runtime-spec config.md: "destination ... MUST be an absolute path"; 1.2 tolerates a relative
  // one, read as below "/".
  std::string target = tidy(mount.destination);
  if (mount.destination.empty()) return usage(member(index, "destination") + ": empty");
  if (target == "/") {
    return usage(member(index, "destination") + ": '/' is for the first mount only");
  }
  if (is_below(target, "/proc") && target != "/proc" && !may_cover_proc(target)) {
    return make_error(Kind::denied, "config.json: " + member(index, "destination") +
                                        ": nothing may lie over procfs at " + quoted(target));
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
  if (!bind) return mount_kernel_file_system(index, std::move(options));
  if (mount.source.empty()) return usage(member(index, "source") + ": empty for a bind");
  std::string source =
      mount.source.starts_with("/") ? mount.source : container_.bundle + "/" + mount.source;
  // Another user namespace gets the host's mounts as slaves, never as peers.
  const auto& wish = options.attributes.propagation;
  bool peer = spec_.linux_.rootfs_propagation.ends_with("shared") && !has_namespace("user") &&
              (!wish || wish->type == Propagation::shared);
  add(MountBind{std::move(source), std::move(target), options.recursive_bind || !options.bind,
                options.attributes, std::move(map), peer});
  return {};
}

// Mount points, and in /dev the devices, are made in it after it was mounted.
bool Maker::is_filled_later(size_t index) const {
  std::string target = tidy(spec_.mounts[index].destination);
  bool filled = target == "/dev";
  for (size_t i = index + 1; i < spec_.mounts.size(); ++i) {
    std::string other = tidy(spec_.mounts[i].destination);
    if (other == target) return false;  // hidden: there is nothing to be changed later
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
                               quoted(target));
      return {};
    }
    if (options.id_map) return usage(member(index, "options") + ": idmap is not for cgroups");
    cgroup_namespace();
    add(MountCgroups{std::move(target), mount.type == "cgroup2", options.attributes});
    return {};
  }
  if (mount.type == "sysfs" && in_user_namespace() && !creates("network")) {
    // The kernel gives a new sysfs only to the owner of the network namespace.
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
  // Those of the kernel's own file systems have labels of their own.
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
  // A link that an image left in the place of /proc would have the kernel's files appear elsewhere,
  // and a runtime that later writes to "/proc/self/attr" write to the image's file.
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

void Maker::cgroup_namespace() {
  if (!creates("cgroup") || !facts_.has_cgroups) return;
  if (!std::exchange(in_cgroup_namespace_, true)) add(EnterCgroupNamespace{});
}

bool Maker::host_owns_dev() const {
  return std::any_of(spec_.mounts.begin(), spec_.mounts.end(), [](const oci::Mount& mount) {
    bool bind = mount.type == "bind" ||
                std::any_of(mount.options.begin(), mount.options.end(),
                            [](const auto& word) { return word == "bind" || word == "rbind"; });
    return bind && tidy(mount.destination) == "/dev";
  });
}

void Maker::device(const oci::Device& device) {
  auto major = static_cast<uint32_t>(device.major);
  auto minor = static_cast<uint32_t>(device.minor);
  std::string type = device.type == "u" ? "c" : device.type;
  if (in_user_namespace() && type != "p") {
    auto source = spec_.annotations.find(std::string(oci::kDeviceSourceAnnotation) + device.path);
    add(BindNode{source == spec_.annotations.end() ? device.path : source->second, device.path,
                 std::move(type), major, minor});
    return;
  }
  add(MakeNode{device.path, std::move(type), major, minor, device.file_mode.value_or(0666) & 07777,
               device.uid.value_or(0), device.gid.value_or(0)});
}

Result<void> Maker::devices() {
  // A bind of the host's /dev already holds everything, and nothing may be written there.
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
    bool replaced = std::any_of(asked.begin(), asked.end(), [&](const oci::Device& other) {
      return tidy(other.path) == one.path;
    });
    if (!replaced) device(one);
  }
  for (const auto& one : asked) {
    if (!one.path.starts_with("/") || one.path.ends_with("/")) {
      return usage("linux.devices: expected an absolute path, got " + quoted(one.path));
    }
    if (one.type != "c" && one.type != "b" && one.type != "u" && one.type != "p") {
      return usage("linux.devices: unknown type " + quoted(one.type));
    }
    device(one);
  }
  add(MakeLink{"/dev/ptmx", "pts/ptmx"});
  add(MakeLink{"/dev/fd", "/proc/self/fd"});
  add(MakeLink{"/dev/stdin", "/proc/self/fd/0"});
  add(MakeLink{"/dev/stdout", "/proc/self/fd/1"});
  add(MakeLink{"/dev/stderr", "/proc/self/fd/2"});
  return {};
}

void Maker::console(bool named) {
  if (process_.terminal) add(MakeConsole{process_.console_size, named});
}

void Maker::masks() {
  auto tidied = [](std::vector<std::string> paths) {
    std::transform(paths.begin(), paths.end(), paths.begin(), tidy);
    return paths;
  };
  if (!spec_.linux_.readonly_paths.empty()) add(MakeReadonly{tidied(spec_.linux_.readonly_paths)});
  if (!spec_.linux_.masked_paths.empty()) add(MaskPaths{tidied(spec_.linux_.masked_paths)});
}

/// The namespace that a key belongs to, or "": such a one would change the host.
std::string_view namespace_of_sysctl(std::string_view key) {
  static constexpr std::array<std::string_view, 8> kIpc = {
      "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
      "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"};
  if (std::find(kIpc.begin(), kIpc.end(), key) != kIpc.end()) return "ipc";
  if (key.starts_with("fs.mqueue.")) return "ipc";
  if (key.starts_with("net.")) return "network";
  return key == "kernel.domainname" ? "uts" : "";
}

// As the kernel's dev_valid_name(); "%d" stands for a number in a pattern.
bool is_interface_name(std::string_view name) {
  constexpr size_t kMost = 15;
  return !name.empty() && name.size() <= kMost && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || c == ':' || c <= ' ' || c == 0x7f; });
}

bool is_interface_pattern(std::string_view name) {
  size_t number = name.find("%d");
  std::string rest(name);
  if (number != std::string::npos) rest.replace(number, 2, "0");
  return is_interface_name(name) && rest.find('%') == std::string::npos;
}

// runtime-spec config-linux.md "Network Devices": "The runtime MUST ... move the network interface
// to the container's network namespace", and sysctls may name it.
Result<void> Maker::interfaces() {
  const auto& devices = spec_.linux_.net_devices;
  if (devices.empty()) return {};
  if (!has_namespace("network")) return usage("linux.netDevices: needs a network namespace");
  MoveInterfaces step;
  std::set<std::string> names;
  for (const auto& [from, device] : devices) {
    const std::string& to = device.name.empty() ? from : device.name;
    if (!is_interface_name(from) || from.find('%') != std::string::npos) {
      return usage("linux.netDevices: " + quoted(from) + " is no name of an interface");
    }
    if (!is_interface_pattern(to)) {
      return usage("linux.netDevices." + from + ".name: " + quoted(to) +
                   " is no name of an interface");
    }
    if (to.find('%') == std::string::npos && !names.insert(to).second) {
      return usage("linux.netDevices." + from + ".name: " + quoted(to) + " is there twice");
    }
    step.interfaces.push_back({from, to});
  }
  add(std::move(step));
  return {};
}

Result<void> Maker::kernel_settings() {
  if (creates("network")) add(RaiseLoopback{});
  if (!spec_.hostname.empty()) add(SetHostname{spec_.hostname});
  if (!spec_.domainname.empty()) add(SetDomainname{spec_.domainname});
  for (const auto& [name, value] : spec_.linux_.sysctl) {
    std::string key = name;
    if (key.find('.') == std::string::npos) std::replace(key.begin(), key.end(), '/', '.');
    std::string space(namespace_of_sysctl(key));
    if (key.find("..") != std::string::npos || key.find('/') != std::string::npos ||
        !has_namespace(space)) {
      return usage("linux.sysctl: " + quoted(name) + " is not of a namespace of the container");
    }
    add(SetSysctl{std::move(key), value, std::move(space)});
  }
  return {};
}

Result<void> Maker::clocks() {
  const auto& offsets = spec_.linux_.time_offsets;
  if (!offsets.empty() && !creates("time")) {
    return usage("linux.timeOffsets: needs a new time namespace");
  }
  for (const auto& [clock, offset] : offsets) {
    if (clock != "monotonic" && clock != "boottime") {
      return usage("linux.timeOffsets: unknown clock " + quoted(clock));
    }
    if (offset.nanosecs >= 1'000'000'000) {
      return usage("linux.timeOffsets[" + quoted(clock) +
                   "].nanosecs: expected less than 10^9, got " + std::to_string(offset.nanosecs));
    }
  }
  if (creates("time")) add(EnterTimeNamespace{offsets});
  return {};
}

Result<void> Maker::resctrl() {
  if (!spec_.linux_.intel_rdt) return {};
  JoinResctrl step = TRY(resctrl_step(*spec_.linux_.intel_rdt, container_.id));
  if (!facts_.resctrl) {
    return unsupported("linux.intelRdt: '/sys/fs/resctrl' is not mounted on this machine");
  }
  add(std::move(step));
  return {};
}

Result<void> Maker::labels() {
  SetLabels step{process_.apparmor_profile, process_.selinux_label};
  // Without AppArmor everything is unconfined.
  if (step.apparmor == "unconfined" && !facts_.apparmor) step.apparmor.clear();
  if (!step.apparmor.empty() && !facts_.apparmor) {
    return unsupported("process.apparmorProfile: AppArmor is not enabled on this machine");
  }
  if (!step.selinux.empty() && !facts_.selinux) {
    return unsupported("process.selinuxLabel: SELinux is not enabled on this machine");
  }
  if (!step.apparmor.empty() || !step.selinux.empty()) add(std::move(step));
  return {};
}

// After the cgroup, which bounds what they may ask for, and before the rights for them go.
Result<void> Maker::attributes() {
  if (process_.scheduler) add(TRY(scheduler_step(*process_.scheduler)));
  if (process_.io_priority) add(TRY(io_priority_step(*process_.io_priority)));
  const auto& on_linux = spec_.linux_;
  if (on_linux.memory_policy) add(TRY(memory_policy_step(*on_linux.memory_policy)));
  if (on_linux.personality) add(TRY(personality_step(*on_linux.personality)));
  return {};
}

Result<void> Maker::affinity() {
  if (!process_.exec_cpu_affinity) return {};
  auto processors =
      TRY(parse_cpu_list(process_.exec_cpu_affinity->final_, "process.execCPUAffinity.final"));
  if (!processors.empty()) add(SetAffinity{std::move(processors)});
  return {};
}

// While the process has the ids of the caller: in another user namespace the file is not its own.
void Maker::oom_score() {
  if (process_.oom_score_adj) add(SetOomScore{*process_.oom_score_adj});
}

Result<void> Maker::hooks(const char* stage, const std::vector<oci::Hook>& list) {
  for (const auto& hook : list) {
    if (!hook.path.starts_with("/")) {
      return usage("hooks." + std::string(stage) + ": expected an absolute path, got " +
                   quoted(hook.path));
    }
    if (hook.timeout && *hook.timeout <= 0) {
      return usage("hooks." + std::string(stage) + ": a timeout that is not positive");
    }
  }
  if (!list.empty()) add(RunHooks{stage, list});
  return {};
}

Result<void> Maker::enter_root() {
  EnterRoot step;
  step.readonly = spec_.root.readonly;
  const std::string& wish = spec_.linux_.rootfs_propagation;
  if (!wish.empty()) {
    MountOptions options = parse_mount_options({wish});
    if (!options.attributes.propagation) {
      return usage("linux.rootfsPropagation: unknown value " + quoted(wish));
    }
    step.propagation = options.attributes.propagation;
  }
  add(step);
  return {};
}

Result<void> Maker::limits() {
  struct Name {
    std::string_view name;
    int resource;
  };
  static constexpr std::array kNames = {Name{"RLIMIT_AS", RLIMIT_AS},
                                        Name{"RLIMIT_CORE", RLIMIT_CORE},
                                        Name{"RLIMIT_CPU", RLIMIT_CPU},
                                        Name{"RLIMIT_DATA", RLIMIT_DATA},
                                        Name{"RLIMIT_FSIZE", RLIMIT_FSIZE},
                                        Name{"RLIMIT_LOCKS", RLIMIT_LOCKS},
                                        Name{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
                                        Name{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
                                        Name{"RLIMIT_NICE", RLIMIT_NICE},
                                        Name{"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                        Name{"RLIMIT_NPROC", RLIMIT_NPROC},
                                        Name{"RLIMIT_RSS", RLIMIT_RSS},
                                        Name{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
                                        Name{"RLIMIT_RTTIME", RLIMIT_RTTIME},
                                        Name{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
                                        Name{"RLIMIT_STACK", RLIMIT_STACK}};
  std::set<std::string> seen;
  for (const auto& limit : process_.rlimits) {
    auto found = std::find_if(kNames.begin(), kNames.end(),
                              [&](const Name& name) { return name.name == limit.type; });
    if (found == kNames.end()) {
      return usage("process.rlimits: unknown type " + quoted(limit.type));
    }
    if (!seen.insert(limit.type).second) {
      return usage("process.rlimits: " + quoted(limit.type) + " is there twice");
    }
    add(SetRlimit{limit.type, found->resource, limit.soft, limit.hard});
  }
  return {};
}

uint64_t Maker::capability_set(const std::vector<std::string>& names, const char* member) {
  std::vector<std::string> unknown;
  uint64_t set = oci::capability_bits(names, unknown);
  for (const auto& name : unknown) {
    plan_.warnings.push_back("process.capabilities." + std::string(member) +
                             ": unknown capability " + quoted(name) + ", ignoring");
  }
  return set;
}

void Maker::identity() {
  const auto& process = process_;
  SetCapabilities capabilities;
  if (process.capabilities) {
    capabilities.bounding = capability_set(process.capabilities->bounding, "bounding");
    capabilities.effective = capability_set(process.capabilities->effective, "effective");
    capabilities.permitted = capability_set(process.capabilities->permitted, "permitted");
    capabilities.inheritable = capability_set(process.capabilities->inheritable, "inheritable");
    capabilities.ambient = capability_set(process.capabilities->ambient, "ambient");
  }
  // Without no_new_privs the kernel takes a filter only from a privileged process, so that it has
  // to be loaded before the privileges go; with it, it comes last and need not allow these steps.
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && !process.no_new_privileges) add(LoadSeccomp{*seccomp});
  add(LimitCapabilities{capabilities.bounding});
  add(EnterDirectory{tidy(process.cwd)});
  add(SetIdentity{process.user.uid, process.user.gid, process.user.additional_gids});
  add(capabilities);
  add(SetUmask{process.user.umask.value_or(0022) & 0777});
  if (process.no_new_privileges) add(ForbidNewPrivileges{});
}

void Maker::find_program() {
  if (spec_.process) add(FindProgram{process_.args[0], search_path(process_.env)});
}

// Whoever has the listener gets it from `create`, which has gone when `start` comes.
bool notifies(const oci::Seccomp& profile) {
  constexpr std::string_view kNotify = "SCMP_ACT_NOTIFY";
  return profile.default_action == kNotify ||
         std::any_of(profile.syscalls.begin(), profile.syscalls.end(),
                     [&](const auto& rule) { return rule.action == kNotify; });
}

void Maker::await_start() {
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && process_.no_new_privileges && notifies(*seccomp)) add(LoadSeccomp{*seccomp});
  if (container_.await_start) add(AwaitStart{});
}

void Maker::program() {
  const auto& process = process_;
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && process.no_new_privileges && !notifies(*seccomp)) add(LoadSeccomp{*seccomp});
  add(Execute{process.args, process.env});
}

}  // namespace

std::span<const std::string_view> namespace_types() {
  return kNamespaces;
}

Result<void> Maker::own_root() {
  TRY(root());
  TRY(mounts());
  TRY(devices());
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

Result<Plan> make(const oci::Spec& spec, const Container& container, const HostFacts& facts) {
  Maker maker(spec, container, facts);
  TRY(maker.check());
  TRY(maker.cgroup());
  maker.oom_score();
  TRY(maker.resctrl());
  TRY(maker.spawn());
  if (maker.has_own_root()) maker.isolate_mounts();
  TRY(maker.clocks());
  TRY(maker.interfaces());
  TRY(maker.kernel_settings());
  if (maker.has_own_root()) TRY(maker.own_root());
  maker.cgroup_namespace();
  TRY(maker.hooks("prestart", spec.hooks.prestart));
  TRY(maker.hooks("createRuntime", spec.hooks.create_runtime));
  TRY(maker.hooks("createContainer", spec.hooks.create_container));
  TRY(maker.labels());
  if (maker.has_own_root()) {
    TRY(maker.enter_root());
  } else {
    maker.shared_root();
  }
  TRY(maker.attributes());
  TRY(maker.limits());
  maker.identity();
  maker.find_program();
  maker.await_start();
  TRY(maker.hooks("startContainer", spec.hooks.start_container));
  maker.program();
  return maker.take();
}

Result<Plan> make_exec(const oci::Spec& spec, const HostFacts& facts) {
  Container container;
  Maker maker(spec, container, facts);
  TRY(maker.check_process());
  // The files of these two are the host's.
  maker.oom_score();
  TRY(maker.labels());
  maker.join_container();
  maker.console(false);
  TRY(maker.attributes());
  TRY(maker.affinity());
  TRY(maker.limits());
  maker.identity();
  maker.find_program();
  maker.await_start();  // only for a filter with a listener
  maker.program();
  return maker.take();
}

}  // namespace berth::plan
