// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

/// The runtime-spec's config.json as plain structs, names as in the spec with underscores
/// (runtime-spec config.md, config-linux.md; version 1.3.0). Absent members are std::optional or
/// empty strings and lists where the spec gives both the same meaning.
namespace berth::oci {

inline constexpr std::string_view kRuntimeSpecVersion = "1.3.0";

/// The unknown members of an object, kept so that an edited file loses nothing. Opaque: only the
/// reader and the writer look inside.
using Rest = json::Object;

struct Root {
  std::string path{};  ///< absolute, or relative to the bundle
  bool readonly = false;
  Rest rest{};
};

struct IdMapping {
  uint32_t container_id = 0;
  uint32_t host_id = 0;
  uint32_t size = 0;
};

struct Mount {
  std::string destination{};  ///< absolute path inside the container
  std::string type{};         ///< "bind", "proc", …; empty for a bind mount that its options name
  std::string source{};
  std::vector<std::string> options{};
  std::vector<IdMapping> uid_mappings{};
  std::vector<IdMapping> gid_mappings{};
  Rest rest{};
};

struct ConsoleSize {
  uint32_t height = 0;
  uint32_t width = 0;
};

struct User {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::optional<uint32_t> umask{};
  std::vector<uint32_t> additional_gids{};
  Rest rest{};
};

/// Names as "CAP_CHOWN".
struct Capabilities {
  std::vector<std::string> bounding{};
  std::vector<std::string> effective{};
  std::vector<std::string> inheritable{};
  std::vector<std::string> permitted{};
  std::vector<std::string> ambient{};
};

struct Rlimit {
  std::string type{};  ///< "RLIMIT_NOFILE"
  uint64_t soft = 0;
  uint64_t hard = 0;
};

/// The kernel's scheduling of the process. sched_setattr(2)
struct Scheduler {
  std::string policy{};  ///< "SCHED_BATCH"
  std::optional<int32_t> nice{};
  std::optional<int32_t> priority{};
  std::vector<std::string> flags{};   ///< "SCHED_FLAG_RESET_ON_FORK"
  std::optional<uint64_t> runtime{};  ///< nanoseconds, as the two below
  std::optional<uint64_t> deadline{};
  std::optional<uint64_t> period{};
};

/// ioprio_set(2)
struct IoPriority {
  std::string class_{};  ///< "IOPRIO_CLASS_BE"
  int32_t priority = 0;  ///< 0 (highest) to 7
};

/// Processors as "0-3,7"; for exec only.
struct ExecCpuAffinity {
  std::string initial{};  ///< until the process is moved into its cgroup
  std::string final_{};   ///< afterwards
};

struct Process {
  bool terminal = false;
  std::optional<ConsoleSize> console_size{};
  User user{};
  std::vector<std::string> args{};
  std::vector<std::string> env{};  ///< "NAME=value"
  std::string cwd{};
  std::optional<Capabilities> capabilities{};
  std::vector<Rlimit> rlimits{};
  bool no_new_privileges = false;
  std::optional<int> oom_score_adj{};
  std::string apparmor_profile{};
  std::string selinux_label{};
  std::optional<Scheduler> scheduler{};
  std::optional<IoPriority> io_priority{};
  std::optional<ExecCpuAffinity> exec_cpu_affinity{};
  Rest rest{};
};

struct Hook {
  std::string path{};  ///< absolute
  std::vector<std::string> args{};
  std::optional<std::vector<std::string>> env{};  ///< absent: the environment of the runtime
  std::optional<int64_t> timeout{};               ///< seconds, > 0
};

struct Hooks {
  std::vector<Hook> prestart{};
  std::vector<Hook> create_runtime{};
  std::vector<Hook> create_container{};
  std::vector<Hook> start_container{};
  std::vector<Hook> poststart{};
  std::vector<Hook> poststop{};
  Rest rest{};
  bool empty() const;
};

/// The names of the hook stages in the spec, in execution order.
std::span<const std::string_view> hook_names();

struct Namespace {
  std::string type{};  ///< pid network mount ipc uts user cgroup time
  std::string path{};  ///< empty: a new one
};

struct Device {
  std::string type{};  ///< "c", "b", "u" or "p"
  std::string path{};
  int64_t major = 0;
  int64_t minor = 0;
  std::optional<uint32_t> file_mode{};
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
};

struct DeviceRule {
  bool allow = false;
  std::string type{};              ///< "a", "b", "c"; empty means "a"
  std::optional<int64_t> major{};  ///< absent: any
  std::optional<int64_t> minor{};
  std::string access{};  ///< of "rwm"; empty means all
};

struct Memory {
  std::optional<int64_t> limit{};  ///< bytes; -1: none
  std::optional<int64_t> reservation{};
  std::optional<int64_t> swap{};  ///< memory + swap
  std::optional<uint64_t> swappiness{};
  std::optional<bool> disable_oom_killer{};
  std::optional<bool> check_before_update{};
  Rest rest{};
};

struct Cpu {
  std::optional<uint64_t> shares{};
  std::optional<int64_t> quota{};  ///< microseconds per period
  std::optional<uint64_t> burst{};
  std::optional<uint64_t> period{};  ///< microseconds
  std::optional<int64_t> realtime_runtime{};
  std::optional<uint64_t> realtime_period{};
  std::string cpus{};
  std::string mems{};
  std::optional<int64_t> idle{};
  Rest rest{};
};

struct Pids {
  int64_t limit = -1;  ///< -1: none
};

struct DeviceWeight {
  int64_t major = 0;
  int64_t minor = 0;
  std::optional<uint32_t> weight{};
  std::optional<uint32_t> leaf_weight{};
};

struct DeviceRate {
  int64_t major = 0;
  int64_t minor = 0;
  uint64_t rate = 0;  ///< bytes or operations a second
};

struct BlockIo {
  std::optional<uint32_t> weight{};  ///< 10 to 1000
  std::optional<uint32_t> leaf_weight{};
  std::vector<DeviceWeight> weight_device{};
  std::vector<DeviceRate> throttle_read_bps{};
  std::vector<DeviceRate> throttle_write_bps{};
  std::vector<DeviceRate> throttle_read_iops{};
  std::vector<DeviceRate> throttle_write_iops{};
  Rest rest{};
};

struct InterfacePriority {
  std::string name{};
  uint32_t priority = 0;
};

/// cgroup v1 only.
struct NetworkResources {
  std::optional<uint32_t> class_id{};
  std::vector<InterfacePriority> priorities{};
};

struct Rdma {
  std::optional<uint32_t> hca_handles{};
  std::optional<uint32_t> hca_objects{};
};

struct HugepageLimit {
  std::string page_size{};  ///< "2MB"
  uint64_t limit = 0;       ///< bytes
};

struct Resources {
  std::vector<DeviceRule> devices{};
  std::optional<Memory> memory{};
  std::optional<Cpu> cpu{};
  std::optional<Pids> pids{};
  std::optional<BlockIo> block_io{};
  std::vector<HugepageLimit> hugepage_limits{};
  std::optional<NetworkResources> network{};
  std::map<std::string, Rdma> rdma{};            ///< by device name
  std::map<std::string, std::string> unified{};  ///< cgroup v2 file → value
  Rest rest{};
};

struct SeccompArg {
  uint32_t index = 0;
  uint64_t value = 0;
  uint64_t value_two = 0;
  std::string op{};  ///< "SCMP_CMP_EQ"
};

struct SeccompSyscall {
  std::vector<std::string> names{};
  std::string action{};  ///< "SCMP_ACT_ALLOW"
  std::optional<uint32_t> errno_ret{};
  std::vector<SeccompArg> args{};
};

struct Seccomp {
  std::string default_action{};
  std::optional<uint32_t> default_errno_ret{};
  std::vector<std::string> architectures{};  ///< "SCMP_ARCH_X86_64"
  std::vector<std::string> flags{};          ///< "SECCOMP_FILTER_FLAG_LOG"
  std::string listener_path{};
  std::string listener_metadata{};
  std::vector<SeccompSyscall> syscalls{};
};

/// Shifts a clock of a new time namespace. time_namespaces(7)
struct TimeOffset {
  int64_t secs = 0;
  uint32_t nanosecs = 0;
};

/// A network interface that is moved from the runtime's network namespace into the container's.
struct NetDevice {
  std::string name{};  ///< its name in the container; empty: unchanged
};

/// A resource control group (resctrl).
struct IntelRdt {
  std::string clos_id{};
  std::vector<std::string> schemata{};
  std::string l3_cache_schema{};
  std::string mem_bw_schema{};
  bool enable_monitoring = false;
  Rest rest{};
};

/// set_mempolicy(2)
struct MemoryPolicy {
  std::string mode{};                ///< "MPOL_BIND"
  std::string nodes{};               ///< "0-3,7"
  std::vector<std::string> flags{};  ///< "MPOL_F_STATIC_NODES"
};

/// personality(2)
struct Personality {
  std::string domain{};  ///< "LINUX" or "LINUX32"
  std::vector<std::string> flags{};
};

struct Linux {
  std::vector<Namespace> namespaces{};
  std::vector<IdMapping> uid_mappings{};
  std::vector<IdMapping> gid_mappings{};
  std::vector<Device> devices{};
  std::string cgroups_path{};
  std::optional<Resources> resources{};
  std::map<std::string, std::string> sysctl{};
  std::optional<Seccomp> seccomp{};
  std::string rootfs_propagation{};
  std::vector<std::string> masked_paths{};
  std::vector<std::string> readonly_paths{};
  std::map<std::string, TimeOffset> time_offsets{};  ///< "monotonic", "boottime"
  std::map<std::string, NetDevice> net_devices{};    ///< by the name on the host
  std::string mount_label{};                         ///< SELinux context of the mounts
  std::optional<IntelRdt> intel_rdt{};
  std::optional<MemoryPolicy> memory_policy{};
  std::optional<Personality> personality{};
  Rest rest{};
};

/// One bundle's config.json.
struct Spec {
  std::string oci_version{kRuntimeSpecVersion};
  Root root{};
  std::vector<Mount> mounts{};
  std::optional<Process> process{};
  std::string hostname{};
  std::string domainname{};
  Hooks hooks{};
  std::map<std::string, std::string> annotations{};
  Linux linux_{};  ///< "linux" itself is a predefined macro
  Rest rest{};
};

}  // namespace berth::oci
