// SPDX-License-Identifier: Apache-2.0
#include "engine/spec.hpp"

#include <algorithm>

#include "oci/capabilities.hpp"
#include "oci/default_profile.hpp"
#include "oci/default_spec.hpp"

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
  return make_mount(std::move(destination), "bind", inputs.directory + "/" + std::string(name),
                    inputs.request.read_only ? std::vector<std::string>{"bind", "rprivate", "ro"}
                                             : std::vector<std::string>{"bind", "rprivate"});
}

std::vector<Mount> default_mounts(const SpecInputs& inputs) {
  oci::KernelMounts choices;
  choices.bind_sysfs = inputs.request.network == Network::host && inputs.identity != Identity::root;
  // The terminal's group is not there in a namespace of one id.
  choices.tty_group = inputs.identity != Identity::single;
  // 0 counts as not given.
  uint64_t asked_for = inputs.request.shm_bytes.value_or(0);
  if (asked_for > 0) choices.shm_bytes = asked_for;
  std::vector<Mount> mounts = oci::kernel_mounts(choices);
  mounts.push_back(bind_file(inputs, kResolverFile, "/etc/resolv.conf"));
  mounts.push_back(bind_file(inputs, kHostnameFile, "/etc/hostname"));
  mounts.push_back(bind_file(inputs, kHostsFile, "/etc/hosts"));
  return mounts;
}

Mount volume_mount(const Volume& volume) {
  std::vector<std::string> options = {"rbind", volume.propagation};
  if (volume.read_only) options.emplace_back("ro");
  return make_mount(volume.destination, "bind", volume.source, std::move(options));
}

Mount tmpfs_mount(const Tmpfs& tmpfs) {
  std::vector<std::string> options = {"nosuid", "nodev", "noexec"};
  options.insert(options.end(), tmpfs.options.begin(), tmpfs.options.end());
  return make_mount(tmpfs.destination, "tmpfs", "tmpfs", std::move(options));
}

// Parents before what lies below them, whatever the order of the flags.
std::vector<Mount> requested_mounts(const RunRequest& request) {
  std::vector<Mount> mounts;
  for (const Volume& volume : request.volumes) mounts.push_back(volume_mount(volume));
  for (const Tmpfs& tmpfs : request.tmpfs) mounts.push_back(tmpfs_mount(tmpfs));
  auto depth = [](const Mount& mount) {
    return std::count(mount.destination.begin(), mount.destination.end(), '/');
  };
  std::stable_sort(mounts.begin(), mounts.end(),
                   [&](const Mount& a, const Mount& b) { return depth(a) < depth(b); });
  return mounts;
}

std::vector<Mount> make_mounts(const SpecInputs& inputs) {
  std::vector<Mount> requested = requested_mounts(inputs.request);
  std::vector<Mount> mounts = {overlay_root(inputs)};
  for (Mount& mount : default_mounts(inputs)) {
    bool replaced = std::any_of(requested.begin(), requested.end(), [&](const Mount& other) {
      return other.destination == mount.destination;
    });
    if (!replaced) mounts.push_back(std::move(mount));
  }
  for (Mount& mount : requested) mounts.push_back(std::move(mount));
  return mounts;
}

oci::Process make_process(const SpecInputs& inputs, const std::vector<std::string>& capabilities) {
  oci::Process process;
  process.terminal = inputs.request.terminal;
  process.user.uid = inputs.user.uid;
  process.user.gid = inputs.user.gid;
  // setgroups is off in a namespace of one id.
  if (inputs.identity != Identity::single) {
    process.user.additional_gids = inputs.user.additional_gids;
  }
  process.args = inputs.args;
  process.env = inputs.environment;
  process.cwd = inputs.cwd;
  oci::Capabilities& sets = process.capabilities.emplace();
  sets.bounding = capabilities;
  // What execve would leave to a user that is not root.
  if (inputs.user.uid == 0) sets.effective = sets.permitted = capabilities;
  return process;
}

oci::DeviceRule allow_device(std::string type, std::optional<int64_t> major,
                             std::optional<int64_t> minor, std::string access) {
  return {true, std::move(type), major, minor, std::move(access)};
}

// Nothing but mknod of any node, the six nodes of every container, ptys and the console.
std::vector<oci::DeviceRule> device_rules() {
  std::vector<oci::DeviceRule> rules = {{false, "a", {}, {}, "rwm"}};
  rules.push_back(allow_device("c", {}, {}, "m"));
  rules.push_back(allow_device("b", {}, {}, "m"));
  for (int64_t minor : {3, 5, 7, 8, 9}) rules.push_back(allow_device("c", 1, minor, "rwm"));
  for (int64_t minor : {0, 1, 2}) rules.push_back(allow_device("c", 5, minor, "rwm"));
  rules.push_back(allow_device("c", 136, {}, "rwm"));
  return rules;
}

oci::Resources make_resources(const SpecInputs& inputs) {
  constexpr uint64_t kPeriod = 100'000;  // microseconds, the kernel's default
  const RunRequest& request = inputs.request;
  oci::Resources resources;
  // Device cgroups belong to root; others have no node but those that were bound.
  if (inputs.identity == Identity::root) resources.devices = device_rules();
  if (request.limits.memory_bytes.value_or(0) > 0) {
    oci::Memory& memory = resources.memory.emplace();
    memory.limit = static_cast<int64_t>(*request.limits.memory_bytes);
    // Docker: as much swap as memory. Who has no hierarchy of his own is told of one limit, not
    // two.
    if (inputs.identity == Identity::root)
      memory.swap = static_cast<int64_t>(*request.limits.memory_bytes * 2);
  }
  if (request.limits.cpu_millis.value_or(0) > 0) {
    oci::Cpu& cpu = resources.cpu.emplace();
    cpu.period = kPeriod;
    cpu.quota = static_cast<int64_t>(*request.limits.cpu_millis * kPeriod / 1000);
  }
  if (request.limits.pids.value_or(0) != 0) resources.pids = oci::Pids{*request.limits.pids};
  return resources;
}

std::vector<std::string> strings(std::span<const std::string_view> views) {
  return {views.begin(), views.end()};
}

oci::Linux make_linux(const SpecInputs& inputs, const std::vector<std::string>& capabilities) {
  oci::Linux linux_;
  for (const char* type : {"pid", "ipc", "uts", "mount", "cgroup"}) {
    linux_.namespaces.push_back({type, ""});
  }
  if (inputs.request.network == Network::none) {
    linux_.namespaces.push_back({"network", ""});
    // Docker's habit since 20.10: a server needs no privilege to have port 80 of its own network.
    linux_.sysctl["net.ipv4.ip_unprivileged_port_start"] = "0";
  }
  // Root has the hierarchy, others start from the cgroup that they were given. One level: a parent
  // of our own would be made and removed with every container.
  linux_.cgroups_path = (inputs.identity == Identity::root ? "/berth-" : "berth-") + inputs.id;
  linux_.resources = make_resources(inputs);
  linux_.seccomp = oci::default_seccomp(capabilities, oci::native_machine());
  linux_.masked_paths = strings(oci::default_masked_paths());
  linux_.readonly_paths = strings(oci::default_readonly_paths());
  return linux_;
}

}  // namespace

oci::Spec make_spec(const SpecInputs& inputs) {
  std::vector<std::string> capabilities = strings(oci::default_capabilities());
  oci::Spec spec;
  spec.root.path = kRootDirectory;
  spec.root.readonly = inputs.request.read_only;
  spec.hostname = inputs.hostname;
  spec.mounts = make_mounts(inputs);
  spec.process = make_process(inputs, capabilities);
  spec.linux_ = make_linux(inputs, capabilities);
  return spec;
}

std::string hosts_text(std::string_view hostname) {
  std::string text =
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::\tip6-localnet\n"
      "ff00::\tip6-mcastprefix\n"
      "ff02::1\tip6-allnodes\n"
      "ff02::2\tip6-allrouters\n";
  // There is no address but loopback; the name must still resolve, or MPI and sudo stall.
  text += "127.0.1.1\t" + std::string(hostname) + "\n";
  return text;
}

}  // namespace berth::engine
