// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/spec.hpp"

#include <algorithm>

#include "engine/container/volume_store.hpp"
#include "engine/gpu/host_devices.hpp"
#include "engine/state/directory.hpp"
#include "oci/default_spec.hpp"
#include "oci/edit.hpp"

namespace berth::engine {
namespace {

using oci::make_mount;
using oci::Mount;

// The first mount, at "/", is the container's root: berth-runtime mounts it in the container's own
// mount namespace, so that the host never sees it and a killed container leaves no mount.
Mount overlay_root(const SpecInputs& inputs) {
  std::vector<std::string> options;
  for (const std::string& layer : inputs.layers) options.push_back("lowerdir+=" + layer);
  options.push_back("upperdir=" + inputs.directory + "/" + std::string(kUpperDirectory));
  options.push_back("workdir=" + inputs.directory + "/" + std::string(kWorkDirectory));
  if (inputs.identity != Identity::root) options.emplace_back("userxattr");
  // Without it the kernel syncs the store's whole file system when the container ends.
  if (inputs.request.remove) options.emplace_back("volatile");
  return make_mount("/", "overlay", "overlay", std::move(options));
}

Mount bind_file(const SpecInputs& inputs, std::string_view name, std::string destination) {
  const std::string& directory =
      inputs.network_directory.empty() ? inputs.directory : inputs.network_directory;
  return make_mount(std::move(destination), "bind", directory + "/" + std::string(name),
                    inputs.request.read_only ? std::vector<std::string>{"bind", "rprivate", "ro"}
                                             : std::vector<std::string>{"bind", "rprivate"});
}

using ModeKind = NamespaceMode::Kind;

/// Adjusts a kernel file system that belongs to a namespace: a container that shares the host's
/// namespace gets the host's mount. False: leave the mount out.
bool adapt(const SpecInputs& inputs, Mount& mount) {
  const RunRequest& request = inputs.request;
  // The kernel permits a new procfs only to the owner of the pid namespace.
  if (mount.destination == "/proc" && request.pid.kind == ModeKind::host &&
      inputs.identity != Identity::root) {
    mount = make_mount("/proc", "bind", "/proc", {"rbind", "nosuid", "noexec", "nodev", "rslave"});
  }
  bool of_ipc = mount.destination == "/dev/mqueue" || mount.destination == "/dev/shm";
  if (of_ipc && request.ipc.kind == ModeKind::host) {
    if (mount.destination == "/dev/mqueue" && !inputs.host_has_mqueue) return false;
    mount = make_mount(mount.destination, "bind", mount.destination,
                       {"rbind", "nosuid", "noexec", "nodev", "rprivate"});
  }
  if (mount.destination == "/dev/shm" && !inputs.joined_shm.empty()) {
    mount = make_mount("/dev/shm", "bind", inputs.joined_shm,
                       {"bind", "nosuid", "noexec", "nodev", "rprivate"});
  }
  if (mount.destination == "/dev/shm" && request.ipc.kind == ModeKind::none) return false;
  bool of_kernel = mount.destination == "/sys" || mount.destination == "/sys/fs/cgroup";
  if (of_kernel && request.security.privileged && mount.type != "bind") {
    std::erase(mount.options, "ro");
  }
  return true;
}

/// Programs in the host's own root use the host's files in /etc, which are correct there, unless a
/// flag changes them.
bool keeps_host_files(const SpecInputs& inputs) {
  const RunRequest& r = inputs.request;
  bool own_names = r.hostname || r.domainname || !r.add_host.empty() || !r.dns.empty() ||
                   !r.dns_search.empty() || !r.dns_option.empty();
  bool plain = r.network == Network::none || r.network == Network::host;
  return inputs.host_root && plain && !own_names;
}

/// Docker's path; if the root is a host directory, one that leaves no file behind.
std::string init_place(const RunRequest& request) {
  return request.rootfs ? "/dev/docker-init" : "/sbin/docker-init";
}

std::vector<Mount> default_mounts(const SpecInputs& inputs) {
  oci::KernelMounts choices;
  choices.bind_sysfs = inputs.request.network == Network::host && inputs.identity != Identity::root;
  // A namespace with one id lacks the terminal's group.
  choices.tty_group = inputs.identity != Identity::single;
  // 0 means not set.
  uint64_t asked_for = inputs.request.shm_bytes.value_or(0);
  if (asked_for > 0) choices.shm_bytes = asked_for;
  std::vector<Mount> mounts = oci::kernel_mounts(choices);
  std::erase_if(mounts, [&](Mount& mount) { return !adapt(inputs, mount); });
  if (!keeps_host_files(inputs)) {
    mounts.push_back(bind_file(inputs, kResolverFile, "/etc/resolv.conf"));
    mounts.push_back(bind_file(inputs, kHostnameFile, "/etc/hostname"));
    mounts.push_back(bind_file(inputs, kHostsFile, "/etc/hosts"));
  }
  if (inputs.own_accounts) {
    mounts.push_back(bind_file(inputs, kPasswdFile, "/etc/passwd"));
    mounts.push_back(bind_file(inputs, kGroupFile, "/etc/group"));
  }
  if (inputs.request.init) {
    mounts.push_back(make_mount(init_place(inputs.request), "bind", inputs.init_program,
                                {"bind", "rprivate", "ro", "nosuid", "nodev"}));
  }
  return mounts;
}

Mount volume_mount(const SpecInputs& inputs, const Volume& volume) {
  std::vector<std::string> options = {volume.non_recursive ? "bind" : "rbind", volume.propagation};
  if (volume.read_only) options.emplace_back("ro");
  options.insert(options.end(), volume.restrictions.begin(), volume.restrictions.end());
  std::string source = volume.name.empty() ? volume.source : volume_data(inputs.store, volume.name);
  return make_mount(volume.destination, "bind", std::move(source), std::move(options));
}

Mount tmpfs_mount(const Tmpfs& tmpfs) {
  std::vector<std::string> options = {"nosuid", "nodev", "noexec"};
  options.insert(options.end(), tmpfs.options.begin(), tmpfs.options.end());
  return make_mount(tmpfs.destination, "tmpfs", "tmpfs", std::move(options));
}

std::vector<Mount> requested_mounts(const SpecInputs& inputs) {
  std::vector<Mount> mounts;
  for (const Volume& volume : inputs.request.volumes) {
    mounts.push_back(volume_mount(inputs, volume));
  }
  mounts.insert(mounts.end(), inputs.image_mounts.begin(), inputs.image_mounts.end());
  for (const Tmpfs& tmpfs : inputs.request.tmpfs) mounts.push_back(tmpfs_mount(tmpfs));
  return mounts;
}

// Parents come before the mounts below them, whatever the order of the flags.
std::vector<Mount> make_mounts(const SpecInputs& inputs) {
  std::vector<Mount> requested = requested_mounts(inputs);
  std::vector<Mount> mounts;
  if (!inputs.request.rootfs) mounts.push_back(overlay_root(inputs));
  auto root = static_cast<std::ptrdiff_t>(mounts.size());
  for (Mount& mount : default_mounts(inputs)) {
    bool replaced = std::ranges::any_of(
        requested, [&](const Mount& other) { return other.destination == mount.destination; });
    if (!replaced) mounts.push_back(std::move(mount));
  }
  for (Mount& mount : requested) mounts.push_back(std::move(mount));
  auto depth = [](const Mount& mount) { return std::ranges::count(mount.destination, '/'); };
  std::stable_sort(mounts.begin() + root, mounts.end(),
                   [&](const Mount& one, const Mount& other) { return depth(one) < depth(other); });
  return mounts;
}

std::vector<oci::Rlimit> make_rlimits(const std::vector<Ulimit>& ulimits) {
  std::vector<oci::Rlimit> out;
  // -1 means no limit, which is the largest number in the kernel's format.
  auto value = [](int64_t limit) { return static_cast<uint64_t>(limit); };
  for (const Ulimit& ulimit : ulimits) {
    std::string type = "RLIMIT_";
    for (char c : ulimit.name) type += static_cast<char>(c - 'a' + 'A');
    // The last of two wins, as with docker.
    std::erase_if(out, [&](const oci::Rlimit& other) { return other.type == type; });
    out.push_back({std::move(type), value(ulimit.soft), value(ulimit.hard)});
  }
  return out;
}

oci::Process make_process(const SpecInputs& inputs) {
  const std::vector<std::string>& capabilities = inputs.confinement.capabilities;
  oci::Process process;
  process.terminal = inputs.request.terminal;
  process.user.uid = inputs.user.uid;
  process.user.gid = inputs.user.gid;
  // A user namespace with one id does not permit setgroups.
  if (inputs.identity != Identity::single && !keeps_groups(inputs.request)) {
    process.user.additional_gids = inputs.user.additional_gids;
  }
  if (inputs.request.init) process.args = {init_place(inputs.request), "--"};
  process.args.insert(process.args.end(), inputs.args.begin(), inputs.args.end());
  process.env = inputs.environment;
  process.cwd = inputs.cwd;
  oci::Capabilities& sets = process.capabilities.emplace();
  sets.bounding = capabilities;
  // After execve(2) a user other than root would have neither set, so it gets none here.
  if (inputs.user.uid == 0) sets.effective = sets.permitted = capabilities;
  process.rlimits = make_rlimits(inputs.ulimits);
  process.no_new_privileges = inputs.confinement.no_new_privileges;
  process.apparmor_profile = inputs.confinement.apparmor;
  process.selinux_label = inputs.confinement.selinux;
  if (inputs.oom_score_adj) process.oom_score_adj = static_cast<int>(*inputs.oom_score_adj);
  return process;
}

oci::DeviceRule allow_device(std::string type, std::optional<int64_t> major,
                             std::optional<int64_t> minor, std::string access) {
  return {true, std::move(type), major, minor, std::move(access)};
}

// Permits only mknod of any node, and the use of the six nodes of every container, ptys and the
// console.
std::vector<oci::DeviceRule> device_rules() {
  std::vector<oci::DeviceRule> rules = {{false, "a", {}, {}, "rwm"}};
  rules.push_back(allow_device("c", {}, {}, "m"));
  rules.push_back(allow_device("b", {}, {}, "m"));
  for (int64_t minor : {3, 5, 7, 8, 9}) rules.push_back(allow_device("c", 1, minor, "rwm"));
  for (int64_t minor : {0, 1, 2}) rules.push_back(allow_device("c", 5, minor, "rwm"));
  rules.push_back(allow_device("c", 136, {}, "rwm"));
  return rules;
}

/// Whether the container's cgroup is below those of the caller's batch job: a container of root
/// elsewhere would escape the job's limits, and outlive the job.
bool keeps_to_job(const SpecInputs& inputs) {
  return inputs.in_job && !inputs.request.cgroup_parent;
}

/// Whether systemd may create the container's cgroup: for an ordinary user, and for root below a
/// slice; never in a batch job, because its scheduler searches for processes only in the job's
/// cgroup.
bool may_be_scope(const SpecInputs& inputs) {
  if (keeps_to_job(inputs)) return false;
  return inputs.identity != Identity::root ||
         inputs.request.cgroup_parent.value_or("").ends_with(".slice");
}

/// Whether `--memory` without `--memory-swap` also limits swap, to as much again, as in docker.
Swap swap_of(const SpecInputs& inputs) {
  bool may_limit = inputs.identity == Identity::root || may_be_scope(inputs) ||
                   inputs.request.site.most.memory_bytes.has_value();
  return may_limit ? Swap::as_much : Swap::as_asked;
}

oci::Resources make_resources(const SpecInputs& inputs) {
  oci::Resources resources;
  // Device cgroups need root; other containers have only the nodes that were bound.
  if (inputs.identity == Identity::root) {
    resources.devices = device_rules();
    if (inputs.request.security.privileged) resources.devices = {{true, "a", {}, {}, "rwm"}};
    for (oci::DeviceRule& rule : device_rules_of(inputs.request.device_cgroup_rules)) {
      resources.devices.push_back(std::move(rule));
    }
  }
  add_limits(inputs.request.limits, swap_of(inputs), resources);
  resources.block_io = inputs.block_io;
  return resources;
}

// Root uses the whole hierarchy, ordinary users the cgroup that they are in. One level: a parent of
// Berth's own would be created and removed with every container.
std::string cgroups_path(const SpecInputs& inputs) {
  if (keeps_to_job(inputs)) return "berth-" + inputs.id;
  std::string parent = inputs.request.cgroup_parent.value_or("");
  while (parent.ends_with('/')) parent.pop_back();
  if (inputs.identity != Identity::root) parent.erase(0, parent.find_first_not_of('/'));
  if (!parent.empty()) parent += '/';
  if (inputs.identity == Identity::root && !parent.starts_with('/')) parent.insert(0, "/");
  return parent + "berth-" + inputs.id;
}

/// Adds a namespace of `type`, unless the host's is shared: a new one, or the joined one with its
/// path.
void add_namespace(const SpecInputs& inputs, const std::string& type, ModeKind kind,
                   std::vector<oci::Namespace>& out) {
  if (kind == ModeKind::host) return;
  auto joined = inputs.joined.find(type);
  out.push_back({type, joined == inputs.joined.end() ? "" : joined->second});
}

std::vector<oci::Namespace> make_namespaces(const SpecInputs& inputs) {
  const RunRequest& request = inputs.request;
  std::vector<oci::Namespace> out;
  if (inputs.kept) out.push_back({"user", ""});
  add_namespace(inputs, "pid", request.pid.kind, out);
  add_namespace(inputs, "ipc", request.ipc.kind, out);
  add_namespace(inputs, "uts", request.uts.kind, out);
  out.push_back({"mount", ""});
  add_namespace(inputs, "cgroup", request.cgroupns.kind, out);
  add_namespace(inputs, "network",
                request.network == Network::host ? ModeKind::host : ModeKind::usual, out);
  return out;
}

oci::Linux make_linux(const SpecInputs& inputs) {
  oci::Linux linux_;
  linux_.namespaces = make_namespaces(inputs);
  if (inputs.kept) {
    linux_.uid_mappings = inputs.kept->uids;
    linux_.gid_mappings = inputs.kept->gids;
  }
  if (is_own(inputs.request.network)) {
    // As docker since 20.10: a server needs no privilege for port 80 of its own network.
    linux_.sysctl["net.ipv4.ip_unprivileged_port_start"] = "0";
    // Ping needs no privilege either: icmp(7).
    if (!inputs.kept) {
      linux_.sysctl["net.ipv4.ping_group_range"] = "0 " + std::to_string(inputs.last_group);
    }
  }
  for (const auto& [name, value] : inputs.request.sysctl) linux_.sysctl[name] = value;
  linux_.cgroups_path = cgroups_path(inputs);
  linux_.resources = make_resources(inputs);
  linux_.seccomp = inputs.confinement.seccomp;
  linux_.masked_paths = inputs.confinement.masked_paths;
  linux_.readonly_paths = inputs.confinement.readonly_paths;
  return linux_;
}

}  // namespace

oci::Spec make_spec(const SpecInputs& inputs) {
  oci::Spec spec;
  spec.root.path = inputs.request.rootfs.value_or(std::string(kRootDirectory));
  spec.root.readonly = inputs.request.read_only;
  // Do not set the name of a host or of another container.
  auto uts = inputs.request.uts.kind;
  if (uts != ModeKind::host && uts != ModeKind::container) {
    spec.hostname = inputs.hostname;
    spec.domainname = inputs.request.domainname.value_or("");
  }
  spec.annotations = inputs.request.annotations;
  auto say_yes = [&](std::string_view name) { spec.annotations[std::string(name)] = "yes"; };
  if (keeps_to_job(inputs)) say_yes(oci::kCallersCgroupAnnotation);
  if (may_be_scope(inputs)) say_yes(oci::kScopeAnnotation);
  bool forced = inputs.request.site.most != Limits();
  if (inputs.request.strict_limits || forced) say_yes(oci::kStrictLimitsAnnotation);
  if (keeps_groups(inputs.request)) {
    spec.annotations[std::string(oci::kKeepGroupsAnnotation)] = "1";
  }
  if (inputs.kept) spec.annotations[std::string(oci::kKeepIdsAnnotation)] = "yes";
  spec.mounts = make_mounts(inputs);
  spec.process = make_process(inputs);
  spec.linux_ = make_linux(inputs);
  return spec;
}

}  // namespace berth::engine
