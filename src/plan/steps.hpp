// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/cgroup.hpp"
#include "plan/mount_options.hpp"

/// The steps that start a container, decided before any is executed: `berth run --dry-run` prints
/// the list that berth-runtime executes.
namespace berth::plan {

/// Facts about the host on which the plan depends.
struct HostFacts {
  bool user_namespace = false;   ///< berth-runtime is not in the initial one: binds device nodes
  bool tty_group_mapped = true;  ///< gid 5 exists here, for devpts
  bool has_cgroups = true;
  bool apparmor = false;  ///< these three: in the kernel, and enabled
  bool selinux = false;
  bool resctrl = false;
};

/// The container and its bundle.
struct Container {
  std::string id;
  std::string bundle;        ///< absolute directory
  bool await_start = false;  ///< `create`: stop before the program until `start`
  bool make_cgroup = true;   ///< false: stay in the caller's cgroup
  bool of_engine = false;    ///< our engine wrote the annotations, not an image
  bool new_keyring = true;   ///< false: keep the caller's session keyring
  SystemdManager systemd = SystemdManager::none;  ///< which systemd makes the cgroup, if any
  std::optional<SystemdScope> scope{};            ///< made by systemd instead of linux.cgroupsPath
};

// berth-runtime itself executes the steps up to Spawn; the container's first process executes the
// steps after it. Paths of the container are absolute inside it; all other paths are the host's.

/// A device of the container by its path on the host.
struct HostNode {
  std::string path;
  std::string type;  ///< "c", "b"
  uint32_t major = 0;
  uint32_t minor = 0;
};
struct MakeCgroup {
  std::string path;  ///< linux.cgroupsPath, or "/berth-<id>"; empty if that names the `scope`
  oci::Resources resources;
  std::optional<uint32_t> owner{};      ///< cgroup_owner()
  std::optional<SystemdScope> scope{};  ///< systemd makes it for the first process
  std::vector<HostNode> nodes{};        ///< with `scope`: the nodes of linux.devices
  bool below_caller = false;            ///< `path` begins at the caller's cgroups, not at the roots
};
struct Spawn {
  std::vector<std::string> created;    ///< spec names of the new namespaces
  std::vector<oci::Namespace> joined;  ///< those with a path
  std::vector<oci::IdMapping> uid_mappings;
  std::vector<oci::IdMapping> gid_mappings;
  bool keep_ids = false;  ///< keep the caller's ids until SetIdentity; else be root
};
/// Joins the namespaces of a running container's first process, for exec, which has this step in
/// the place of Spawn.
struct JoinContainer {
  bool keep_ids = false;
};
/// Offsets of the clocks of a new time namespace from those of the host, in nanoseconds.
struct EnterTimeNamespace {
  std::map<std::string, oci::TimeOffset> offsets;
};
/// The control group of the processor's caches and memory bandwidth.
struct JoinResctrl {
  std::string group;  ///< "" stands for the root group
  std::vector<std::string> schemata;
  bool monitoring = false;
};
/// An empty session keyring, so that the container does not have the caller's keys. keyctl(2)
struct MakeKeyring {};
struct IsolateMounts {};
struct EnterCgroupNamespace {};
struct MountOverlayRoot {
  std::string target;              ///< host directory to which the root is attached
  std::vector<std::string> lower;  ///< highest first
  std::string upper;               ///< empty: read-only
  std::string work;
  std::vector<std::string> options;  ///< other options of the file system ("userxattr")
  MountAttributes attributes;
  bool served = false;  ///< by fuse-overlayfs, because this user cannot mount a kernel overlay
};
struct BindRoot {
  std::string path;
};
/// The layers of an image as read-only data: a single layer directly, several as an overlay.
struct MountLayers {
  std::string target;
  std::vector<std::string> lower;    ///< highest first
  std::vector<std::string> options;  ///< as in MountOverlayRoot
  MountAttributes attributes;
};
/// The id mapping of a mount.
struct IdMap {
  std::vector<oci::IdMapping> uids;
  std::vector<oci::IdMapping> gids;
  std::string user_namespace;  ///< host path of one with the mapping; empty: use the lists
  bool recursive = false;
  std::string member;  ///< "mounts[3].options", for errors
};
/// If `id_map` is set, berth-runtime itself mounts the file system: it has CAP_SYS_ADMIN over it.
struct MountFilesystem {
  std::string type;
  std::string source;
  std::string target;
  std::vector<std::string> data;  ///< "size=65536k"
  MountAttributes attributes;
  bool exact = false;    ///< refuse a symbolic link anywhere in `target`
  bool copy_up = false;  ///< begin with the content of the target
  std::optional<IdMap> id_map{};
};
struct MountBind {
  std::string source;
  std::string target;
  bool recursive = false;
  MountAttributes attributes;
  std::optional<IdMap> id_map{};
  bool peer = false;  ///< mounts made below it in the container propagate to the host, too
  BindLinks links{};
};
/// Changes an existing mount.
struct ChangeMount {
  std::string target;
  MountAttributes attributes;
  bool super_block = false;  ///< also changes the file system, for all its mounts
  std::string type{};
  std::string source{};
  std::vector<std::string> data{};
};
struct MountCgroups {
  std::string target;
  bool unified = false;  ///< only version 2
  MountAttributes attributes;
  bool without_unified = false;  ///< hide the version 2 hierarchy of a hybrid system
};
struct MakeNode {
  std::string path;
  std::string type;  ///< "c", "b", "p"
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
};
struct BindNode {
  std::string source;  ///< the host's node; has to be `type` `major`:`minor`
  std::string path;
  std::string type;
  uint32_t major = 0;
  uint32_t minor = 0;
};
struct MakeLink {
  std::string path;
  std::string text;
};
/// As `ln -sf`: replaces any file of that name but no directory.
struct ReplaceLink {
  std::string path;
  std::string text;
};
/// Places the container's own copies of the files by which a dynamic loader finds libraries:
/// glibc's cache, its input for ldconfig and, if the image has musl, musl's list of directories.
struct PlaceLoaderFiles {
  /// true: the cache is a file in the root, which ldconfig can replace as usual. false, or if the
  /// root is not writable: the cache is a file in the container's state directory, bound read-only.
  bool in_root = true;
};
/// Writes the loader files: the image's content, with `entries` and, if it fits, the image's compat
/// package (newer driver libraries). This reads files of the image, so it comes after the process
/// has dropped all rights that the image's program does not have.
struct FillLoaderFiles {
  std::vector<oci::LoaderLine> entries;
  std::optional<oci::CompatRequest> compat;
};
struct MakeConsole {
  std::optional<oci::ConsoleSize> size;
  bool named = true;  ///< bind it at '/dev/console', too
};
struct MaskPaths {
  std::vector<std::string> paths;
};
struct MakeReadonly {
  std::vector<std::string> paths;
};
struct MovedInterface {
  std::string from;
  std::string to;  ///< a name, or a pattern such as "eth%d"
};
/// Moves network interfaces into the container; berth-runtime does it before AwaitCgroup returns.
struct MoveInterfaces {
  std::vector<MovedInterface> interfaces;
};
struct RaiseLoopback {};
struct SetSysctl {
  std::string key;  ///< with dots
  std::string value;
  std::string space;  ///< the namespace that the setting belongs to: "network"
};
struct SetHostname {
  std::string name;
};
struct SetDomainname {
  std::string name;
};
struct SetOomScore {
  int score = 0;
};
struct RunHooks {
  std::string stage;  ///< spec name: "createRuntime"
  std::vector<oci::Hook> hooks;
};
struct EnterRoot {
  bool readonly = false;
  std::string directory;  ///< the working directory, made before the root is read-only
  std::optional<PropagationChange> propagation;
};
/// Security labels for the program, effective at execve.
struct SetLabels {
  std::string apparmor;  ///< a profile, or empty
  std::string selinux;   ///< a context, or empty
};
struct SetScheduler {
  std::string name;     ///< "SCHED_BATCH"
  uint32_t policy = 0;  ///< this and the rest: as in sched_setattr(2)
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
struct SetIoPriority {
  std::string name;  ///< "IOPRIO_CLASS_BE"
  int io_class = 0;
  int level = 0;
};
struct SetMemoryPolicy {
  std::string name;  ///< "MPOL_BIND"
  int mode = 0;      ///< with MPOL_F_*
  std::vector<unsigned> nodes;
};
struct SetPersonality {
  std::string name;  ///< "LINUX32"
  unsigned long persona = 0;
};
/// The processors to run on; set after joining the cgroup. For exec.
struct SetAffinity {
  std::vector<unsigned> processors;
};
/// Run on all processors of the cpuset, regardless of the caller's affinity; set after joining the
/// cgroup. For exec, too.
struct ResetAffinity {};
/// Preferred processors and memory nodes, as far as allowed; set after joining the cgroup. For
/// exec, too. Either may be empty.
struct PreferPlace {
  std::vector<unsigned> processors;
  std::vector<unsigned> memory_nodes;
};
/// The root of a container without a new mount namespace: a directory of a shared mount namespace.
struct EnterSharedRoot {
  std::string path;             ///< a directory in that mount namespace
  std::string mount_namespace;  ///< the namespace, by path; empty: the caller's
};
struct SetRlimit {
  std::string type;
  int resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;
};
/// Bit n stands for capability n of linux/capability.h.
struct SetCapabilities {
  uint64_t bounding = 0;
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
  uint64_t ambient = 0;
};
struct LimitCapabilities {
  uint64_t bounding = 0;
};
struct SetIdentity {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  bool keep_groups = false;  ///< keep the caller's groups, even unmapped ones
};
enum class Missing { made, refused };
struct EnterDirectory {
  std::string path;
  /// `made` for the first process, as in docker, but not for exec: a typo would leave an empty
  /// directory.
  Missing missing = Missing::made;
};
struct SetUmask {
  uint32_t mask = 0;
};
struct ForbidNewPrivileges {};
struct LoadSeccomp {
  oci::Seccomp profile;
  bool refuse_unknown = false;  ///< refuse unknown system calls
};
/// Comes after identity and directory, but before the filter: the lookup must not depend on the
/// system calls that a profile allows.
struct FindProgram {
  std::string name;
  std::string path;  ///< the PATH of the container
};
/// If HOME is missing or empty, sets it to the user's home directory in the container's
/// /etc/passwd, as runc and crun do.
struct FindHome {
  uint32_t uid = 0;
};
struct AwaitStart {};
/// Waits until berth-runtime, or systemd, has moved this process into its cgroup, and its network
/// interfaces into its namespace.
struct AwaitCgroup {};
/// Waits until the limits and the device rules are set, and the seccomp filter is compiled.
struct AwaitConfinement {};
struct Execute {
  std::vector<std::string> args;
  std::vector<std::string> env;
};

using Step =
    std::variant<MakeCgroup, Spawn, JoinContainer, EnterTimeNamespace, JoinResctrl, SetLabels,
                 SetScheduler, SetIoPriority, SetMemoryPolicy, SetPersonality, SetAffinity,
                 ResetAffinity, PreferPlace, MakeKeyring, EnterSharedRoot, IsolateMounts,
                 EnterCgroupNamespace, MountOverlayRoot, BindRoot, MountLayers, MountFilesystem,
                 MountBind, ChangeMount, MountCgroups, MakeNode, BindNode, MakeLink, ReplaceLink,
                 PlaceLoaderFiles, FillLoaderFiles, MakeConsole, MaskPaths, MakeReadonly,
                 MoveInterfaces, RaiseLoopback, SetSysctl, SetHostname, SetDomainname, SetOomScore,
                 RunHooks, EnterRoot, SetRlimit, LimitCapabilities, SetCapabilities, SetIdentity,
                 EnterDirectory, SetUmask, ForbidNewPrivileges, LoadSeccomp, FindProgram, FindHome,
                 AwaitStart, AwaitCgroup, AwaitConfinement, Execute>;

struct Plan {
  std::vector<Step> steps;            ///< in the order of execution
  std::vector<std::string> warnings;  ///< each ends with "ignoring"
};

/// The first step of type T, or null.
template <class T>
const T* find(const Plan& plan) {
  for (const auto& step : plan.steps) {
    if (const auto* found = std::get_if<T>(&step)) return found;
  }
  return nullptr;
}

}  // namespace berth::plan
