// SPDX-License-Identifier: Apache-2.0
#include "oci/config.hpp"

#include <array>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "oci/shared_fields.hpp"

namespace berth::oci {

void fields(auto& v, Root& root) {
  v.required("path", root.path);
  v.optional("readonly", root.readonly);
  v.rest(root.rest);
}

void fields(auto& v, ConsoleSize& size) {
  v.required("height", size.height);
  v.required("width", size.width);
}

void fields(auto& v, User& user) {
  v.always("uid", user.uid);
  v.always("gid", user.gid);
  v.optional("umask", user.umask);
  v.optional("additionalGids", user.additional_gids);
  v.rest(user.rest);
}

void fields(auto& v, Capabilities& capabilities) {
  v.optional("bounding", capabilities.bounding);
  v.optional("effective", capabilities.effective);
  v.optional("inheritable", capabilities.inheritable);
  v.optional("permitted", capabilities.permitted);
  v.optional("ambient", capabilities.ambient);
}

void fields(auto& v, Rlimit& limit) {
  v.required("type", limit.type);
  v.required("soft", limit.soft);
  v.required("hard", limit.hard);
}

void fields(auto& v, Scheduler& scheduler) {
  v.required("policy", scheduler.policy);
  v.optional("nice", scheduler.nice);
  v.optional("priority", scheduler.priority);
  v.optional("flags", scheduler.flags);
  v.optional("runtime", scheduler.runtime);
  v.optional("deadline", scheduler.deadline);
  v.optional("period", scheduler.period);
}

void fields(auto& v, IoPriority& priority) {
  v.required("class", priority.class_);
  v.optional("priority", priority.priority);
}

void fields(auto& v, ExecCpuAffinity& affinity) {
  v.optional("initial", affinity.initial);
  v.optional("final", affinity.final_);
}

void fields(auto& v, Process& process) {
  v.optional("terminal", process.terminal);
  v.optional("consoleSize", process.console_size);
  v.optional("user", process.user);
  v.optional("args", process.args);
  v.optional("env", process.env);
  v.required("cwd", process.cwd);
  v.optional("capabilities", process.capabilities);
  v.optional("rlimits", process.rlimits);
  v.optional("noNewPrivileges", process.no_new_privileges);
  v.optional("oomScoreAdj", process.oom_score_adj);
  v.optional("apparmorProfile", process.apparmor_profile);
  v.optional("selinuxLabel", process.selinux_label);
  v.optional("scheduler", process.scheduler);
  v.optional("ioPriority", process.io_priority);
  v.optional("execCPUAffinity", process.exec_cpu_affinity);
  v.rest(process.rest);
}

void fields(auto& v, Namespace& space) {
  v.required("type", space.type);
  v.optional("path", space.path);
}

void fields(auto& v, Device& device) {
  v.required("type", device.type);
  v.required("path", device.path);
  v.optional("major", device.major);
  v.optional("minor", device.minor);
  v.optional("fileMode", device.file_mode);
  v.optional("uid", device.uid);
  v.optional("gid", device.gid);
}

void fields(auto& v, Memory& memory) {
  v.optional("limit", memory.limit);
  v.optional("reservation", memory.reservation);
  v.optional("swap", memory.swap);
  v.optional("swappiness", memory.swappiness);
  v.optional("disableOOMKiller", memory.disable_oom_killer);
  v.optional("checkBeforeUpdate", memory.check_before_update);
  v.rest(memory.rest);
}

void fields(auto& v, Cpu& cpu) {
  v.optional("shares", cpu.shares);
  v.optional("quota", cpu.quota);
  v.optional("burst", cpu.burst);
  v.optional("period", cpu.period);
  v.optional("realtimeRuntime", cpu.realtime_runtime);
  v.optional("realtimePeriod", cpu.realtime_period);
  v.optional("cpus", cpu.cpus);
  v.optional("mems", cpu.mems);
  v.optional("idle", cpu.idle);
  v.rest(cpu.rest);
}

void fields(auto& v, Pids& pids) {
  v.required("limit", pids.limit);
}

void fields(auto& v, DeviceWeight& device) {
  v.required("major", device.major);
  v.required("minor", device.minor);
  v.optional("weight", device.weight);
  v.optional("leafWeight", device.leaf_weight);
}

void fields(auto& v, DeviceRate& device) {
  v.required("major", device.major);
  v.required("minor", device.minor);
  v.required("rate", device.rate);
}

void fields(auto& v, BlockIo& block_io) {
  v.optional("weight", block_io.weight);
  v.optional("leafWeight", block_io.leaf_weight);
  v.optional("weightDevice", block_io.weight_device);
  v.optional("throttleReadBpsDevice", block_io.throttle_read_bps);
  v.optional("throttleWriteBpsDevice", block_io.throttle_write_bps);
  v.optional("throttleReadIOPSDevice", block_io.throttle_read_iops);
  v.optional("throttleWriteIOPSDevice", block_io.throttle_write_iops);
  v.rest(block_io.rest);
}

void fields(auto& v, HugepageLimit& limit) {
  v.required("pageSize", limit.page_size);
  v.required("limit", limit.limit);
}

void fields(auto& v, InterfacePriority& priority) {
  v.required("name", priority.name);
  v.required("priority", priority.priority);
}

void fields(auto& v, NetworkResources& network) {
  v.optional("classID", network.class_id);
  v.optional("priorities", network.priorities);
}

void fields(auto& v, Rdma& rdma) {
  v.optional("hcaHandles", rdma.hca_handles);
  v.optional("hcaObjects", rdma.hca_objects);
}

void fields(auto& v, Resources& resources) {
  v.optional("devices", resources.devices);
  v.optional("memory", resources.memory);
  v.optional("cpu", resources.cpu);
  v.optional("pids", resources.pids);
  v.optional("blockIO", resources.block_io);
  v.optional("hugepageLimits", resources.hugepage_limits);
  v.optional("network", resources.network);
  v.optional("rdma", resources.rdma);
  v.optional("unified", resources.unified);
  v.rest(resources.rest);
}

void fields(auto& v, SeccompArg& arg) {
  v.required("index", arg.index);
  v.required("value", arg.value);
  v.optional("valueTwo", arg.value_two);
  v.required("op", arg.op);
}

void fields(auto& v, SeccompSyscall& syscall) {
  v.required("names", syscall.names);
  v.required("action", syscall.action);
  v.optional("errnoRet", syscall.errno_ret);
  v.optional("args", syscall.args);
}

void fields(auto& v, Seccomp& seccomp) {
  v.required("defaultAction", seccomp.default_action);
  v.optional("defaultErrnoRet", seccomp.default_errno_ret);
  v.optional("architectures", seccomp.architectures);
  v.optional("flags", seccomp.flags);
  v.optional("listenerPath", seccomp.listener_path);
  v.optional("listenerMetadata", seccomp.listener_metadata);
  v.optional("syscalls", seccomp.syscalls);
}

void fields(auto& v, TimeOffset& offset) {
  v.optional("secs", offset.secs);
  v.optional("nanosecs", offset.nanosecs);
}

void fields(auto& v, NetDevice& device) {
  v.optional("name", device.name);
}

void fields(auto& v, MemoryPolicy& policy) {
  v.required("mode", policy.mode);
  v.optional("nodes", policy.nodes);
  v.optional("flags", policy.flags);
}

void fields(auto& v, Personality& personality) {
  v.required("domain", personality.domain);
  v.optional("flags", personality.flags);
}

void fields(auto& v, Linux& on_linux) {
  v.optional("namespaces", on_linux.namespaces);
  v.optional("uidMappings", on_linux.uid_mappings);
  v.optional("gidMappings", on_linux.gid_mappings);
  v.optional("devices", on_linux.devices);
  v.optional("cgroupsPath", on_linux.cgroups_path);
  v.optional("resources", on_linux.resources);
  v.optional("sysctl", on_linux.sysctl);
  v.optional("seccomp", on_linux.seccomp);
  v.optional("rootfsPropagation", on_linux.rootfs_propagation);
  v.optional("maskedPaths", on_linux.masked_paths);
  v.optional("readonlyPaths", on_linux.readonly_paths);
  v.optional("timeOffsets", on_linux.time_offsets);
  v.optional("netDevices", on_linux.net_devices);
  v.optional("mountLabel", on_linux.mount_label);
  v.optional("intelRdt", on_linux.intel_rdt);
  v.optional("memoryPolicy", on_linux.memory_policy);
  v.optional("personality", on_linux.personality);
  v.rest(on_linux.rest);
}

void fields(auto& v, Spec& spec) {
  v.required("ociVersion", spec.oci_version);
  v.optional("root", spec.root);
  v.optional("mounts", spec.mounts);
  v.optional("process", spec.process);
  v.optional("hostname", spec.hostname);
  v.optional("domainname", spec.domainname);
  v.optional("hooks", spec.hooks);
  v.optional("annotations", spec.annotations);
  v.optional("linux", spec.linux_);
  v.rest(spec.rest);
}

std::span<const std::string_view> hook_names() {
  static constexpr std::array<std::string_view, 6> kNames = {
      "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
  return kNames;
}

bool Hooks::empty() const {
  return prestart.empty() && create_runtime.empty() && create_container.empty() &&
         start_container.empty() && poststart.empty() && poststop.empty();
}

namespace {

// Before ociVersion 1.3 pids.limit could not be omitted, so engines wrote 0 for no limit. runc and
// crun accept that, and podman still writes it.
constexpr uint64_t kFirstWithLimitOfZero = 3;

/// 2 of "1.2.1-dev".
uint64_t minor_of(std::string_view version) {
  auto parts = split(version, '.');
  return parts.size() < 2 ? 0 : parse_u64(parts[1]).value_or(0);
}

}  // namespace

Result<Spec> parse_spec(std::string_view text, std::string_view name) {
  Spec spec = TRY(json::read<Spec>(text, name));
  // "MUST be in SemVer v2.0.0 format"; we do not guess the meaning of another major version.
  if (!spec.oci_version.starts_with("1.")) {
    return make_error(Kind::unsupported, std::string(name) + ": ociVersion: expected 1.x, got " +
                                             quote(spec.oci_version));
  }
  auto& resources = spec.linux_.resources;
  bool no_limit = resources && resources->pids && resources->pids->limit == 0 &&
                  minor_of(spec.oci_version) < kFirstWithLimitOfZero;
  if (no_limit) resources->pids.reset();
  return spec;
}

Result<Process> parse_process(std::string_view text, std::string_view name) {
  return json::read<Process>(text, name);
}

Result<Resources> parse_resources(std::string_view text, std::string_view name) {
  return json::read<Resources>(text, name);
}

std::string write_spec(const Spec& spec) {
  return json::write(spec);
}

std::string write_process(const Process& process) {
  return json::write(process);
}

}  // namespace berth::oci
