// SPDX-License-Identifier: Apache-2.0
// What a container was asked to be. It is saved with the container, and every start decides from it
// anew what needs the machine: GPUs, driver files, mounts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "engine/request/gpu_memory.hpp"
#include "engine/request/limits.hpp"
#include "engine/request/mpi_request.hpp"
#include "engine/request/volume.hpp"
#include "gpu/grant/sources.hpp"
#include "image/transfer_protocol.hpp"
#include "network/request.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

class Environment;

enum class Network {
  none,
  host,
  container,
  bridge,  ///< an own one with a way out: root's bridge, an ordinary user's pasta or slirp4netns
  pasta,   ///< an ordinary user's, with this helper
  slirp4netns,  ///< the same with this one
};
/// Whether it is a namespace of the container's own, and whether that has a way out.
inline bool is_own(Network network) {
  return network != Network::host && network != Network::container;
}
inline bool has_way_out(Network network) {
  return is_own(network) && network != Network::none;
}
std::string to_json_text(const Network& network);
Result<Network> from_json_text(std::string_view text, std::type_identity<Network>);

/// Which namespace of one kind a container gets, its own, the host's or another container's, as
/// --pid, --ipc and their kin say it.
struct NamespaceMode {
  enum class Kind {
    usual,      ///< nobody said
    own,        ///< "private"
    host,       ///< "host"
    container,  ///< "container:ID"
    none,       ///< "none", of --ipc: an own one without /dev/shm
    shareable,  ///< "shareable", of --ipc: an own one that others may join
    keep_id,    ///< "keep-id", of --userns: an own one in which the caller has his own id
  };
  Kind kind = Kind::usual;
  std::string container = {};        ///< after creation: the full id
  std::optional<uint32_t> uid = {};  ///< of "keep-id:uid=N,gid=N": instead of the caller's own
  std::optional<uint32_t> gid = {};
  bool operator==(const NamespaceMode&) const = default;
};
std::string to_json_text(const NamespaceMode& mode);
/// Errors: usage (none of the above).
Result<NamespaceMode> from_json_text(std::string_view text, std::type_identity<NamespaceMode>);

enum class Restart { no, on_failure, always, unless_stopped };
std::string to_json_text(const Restart& restart);
Result<Restart> from_json_text(std::string_view text, std::type_identity<Restart>);

struct RestartPolicy {
  Restart when = Restart::no;
  uint32_t most = 0;  ///< of on_failure: gives up after so many; 0: never
  bool operator==(const RestartPolicy&) const = default;
};
template <class V>
void fields(V& v, RestartPolicy& r) {
  v.always("when", r.when);
  v.optional("most", r.most);
  v.strict();
}

/// What the flags say of the image's health check; none or 0: the image's, or docker's default.
struct Health {
  bool off = false;                    ///< --no-healthcheck
  std::optional<std::string> command;  ///< for the shell of the container
  int64_t interval = 0;                ///< nanoseconds, as all times here
  int64_t timeout = 0;
  int64_t start_period = 0;
  int64_t retries = 0;
  bool operator==(const Health&) const = default;
};
template <class V>
void fields(V& v, Health& h) {
  v.optional("off", h.off);
  v.optional("command", h.command);
  v.optional("interval", h.interval);
  v.optional("timeout", h.timeout);
  v.optional("start_period", h.start_period);
  v.optional("retries", h.retries);
  v.strict();
}

/// What the root file system of a container of an image is made by.
enum class RootfsDriver { overlay, fuse_overlayfs, copy };
std::string to_json_text(const RootfsDriver& driver);  ///< "overlay", "fuse-overlayfs", "copy"
Result<RootfsDriver> from_json_text(std::string_view text, std::type_identity<RootfsDriver>);

enum class LogDriver { json_file, local, none };
std::string to_json_text(const LogDriver& driver);  ///< "json-file", "local", "none"
Result<LogDriver> from_json_text(std::string_view text, std::type_identity<LogDriver>);

struct LogSettings {
  LogDriver driver = LogDriver::json_file;
  std::optional<uint64_t> max_bytes;  ///< a file of this size is put aside; none: the driver's
  std::optional<uint64_t> max_files;
  bool operator==(const LogSettings&) const = default;
};
template <class V>
void fields(V& v, LogSettings& l) {
  v.always("driver", l.driver);
  v.optional("max_bytes", l.max_bytes);
  v.optional("max_files", l.max_files);
  v.strict();
}

/// A node of the host that was asked for by its path.
struct HostDevice {
  std::string source;          ///< absolute, on the host; a directory stands for all nodes in it
  std::string destination;     ///< absolute, in the container
  std::string access = "rwm";  ///< of "rwm"
  bool operator==(const HostDevice&) const = default;
};
template <class V>
void fields(V& v, HostDevice& d) {
  v.required("source", d.source);
  v.required("destination", d.destination);
  v.required("access", d.access);
  v.strict();
}

struct Ulimit {
  std::string name;  ///< "nofile"
  int64_t soft = 0;  ///< -1: no limit
  int64_t hard = 0;
  bool operator==(const Ulimit&) const = default;
};
template <class V>
void fields(V& v, Ulimit& u) {
  v.required("name", u.name);
  v.required("soft", u.soft);
  v.required("hard", u.hard);
  v.strict();
}

/// What the container may do to the kernel.
struct Security {
  bool privileged = false;
  std::vector<std::string> cap_add;  ///< as typed: "ALL", "NET_ADMIN", "cap_net_admin"
  std::vector<std::string> cap_drop;
  bool no_new_privileges = false;
  /// None: docker's profile. "unconfined", or the text of a profile: the file may be gone later.
  std::optional<std::string> seccomp;
  std::optional<std::string> apparmor;  ///< a profile's name, or "unconfined"
  std::vector<std::string> labels;      ///< of SELinux: "disable", "type:spc_t", …
  /// Paths that are neither hidden nor read-only; "ALL" for all of them.
  std::vector<std::string> unmask;
  std::vector<std::string> mask;  ///< hidden as well
  bool operator==(const Security&) const = default;
};
template <class V>
void fields(V& v, Security& s) {
  v.optional("privileged", s.privileged);
  v.optional("cap_add", s.cap_add);
  v.optional("cap_drop", s.cap_drop);
  v.optional("no_new_privileges", s.no_new_privileges);
  v.optional("seccomp", s.seccomp);
  v.optional("apparmor", s.apparmor);
  v.optional("labels", s.labels);
  v.optional("unmask", s.unmask);
  v.optional("mask", s.mask);
  v.strict();
}

/// What the site's rules add that no flag says, and what became of each rule. Decided once, when
/// the container is made.
struct SiteShare {
  std::vector<std::string> environment;         ///< entries under those of the request
  std::vector<std::string> forced_environment;  ///< entries over them
  std::vector<policy::SiteHook> hooks;
  Limits most;        ///< also of a container that is changed; none: as it likes
  bool gpus = false;  ///< are the site's word, also of a container that is changed
  std::vector<policy::Verdict> verdicts;
  bool operator==(const SiteShare&) const = default;
};
template <class V>
void fields(V& v, SiteShare& s) {
  v.optional("environment", s.environment);
  v.optional("forced_environment", s.forced_environment);
  v.optional("hooks", s.hooks);
  v.always("most", s.most);
  v.optional("gpus", s.gpus);
  v.optional("verdicts", s.verdicts);
  v.strict();
}

/// A network with a name (networks.hpp) that a container is in, or "bridge" beside such ones.
struct JoinedNetwork {
  std::string name;
  std::vector<std::string> aliases;
  std::string address{};  ///< empty: any
  std::string mac{};      ///< the same
  bool operator==(const JoinedNetwork&) const = default;
};
template <class V>
void fields(V& v, JoinedNetwork& j) {
  v.required("name", j.name);
  v.optional("aliases", j.aliases);
  v.optional("address", j.address);
  v.optional("mac", j.mac);
}

/// What a container is asked to be; the members are named as the flags. An Asked
/// (decide/asked.hpp) has one in which names are still names; in a Resolved (decide/resolve.hpp),
/// and so in request.json, nothing depends on the caller's directory or environment.
struct RunRequest {
  std::string image;                  ///< empty with `rootfs`
  bool image_file = false;            ///< `image` is the absolute path of a squashfs or SIF
  std::optional<std::string> rootfs;  ///< absolute: a directory of the host instead of an image
  std::optional<RootfsDriver> rootfs_driver;  ///< none: overlay
  std::string rootfs_reason;                  ///< why it is another one
  std::vector<std::string> command;           ///< empty: the image's

  bool remove = false;
  bool interactive = false;
  bool terminal = false;
  bool read_only = false;
  bool init = false;  ///< a small first process reaps the others

  std::optional<std::string> name;
  std::optional<std::string> hostname;
  std::optional<std::string> domainname;
  std::optional<std::string> user;     ///< "uid", "name", "uid:gid", "name:group"
  std::vector<std::string> group_add;  ///< names, ids, "keep-groups"
  std::optional<std::string> workdir;
  /// None: the image's. An empty string clears it.
  std::optional<std::string> entrypoint;
  /// "K=V", or "K" for the value of `inherited`; later entries win. Env-file lines come first.
  std::vector<std::string> environment;
  /// "K=V" of the one who created the container, for the names in `environment`. A name that has no
  /// entry here takes the variable away.
  std::vector<std::string> inherited;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  std::vector<Volume> volumes;
  std::vector<Tmpfs> tmpfs;
  std::vector<ImageMount> image_mounts;
  std::vector<std::string> volumes_from;  ///< as typed; resolve() adds their volumes above

  Network network = Network::none;
  bool network_asked = false;           ///< the user has said so: a default does not count
  std::string network_container;        ///< of Network::container; after creation: the full id
  std::vector<JoinedNetwork> networks;  ///< of Network::bridge; empty: the one without a name
  std::string mac_address;              ///< in the first of them, or without any; empty: any
  NamespaceMode pid;
  NamespaceMode ipc;
  NamespaceMode uts;
  NamespaceMode userns;
  NamespaceMode cgroupns;
  std::vector<std::string> add_host;  ///< "name:address", "name:host-gateway"
  std::vector<std::string> dns;
  std::vector<std::string> dns_search;
  std::vector<std::string> dns_option;
  std::vector<std::string> expose;  ///< "80/tcp", "8000-8010"
  std::vector<network::Publish> publish;
  bool publish_all = false;  ///< what the image and `expose` name as well, at any free port

  Limits limits;
  std::optional<uint64_t> shm_bytes;  ///< of /dev/shm; none or 0: 64 MiB
  std::vector<Ulimit> ulimits;
  std::map<std::string, std::string> sysctl;
  std::optional<int64_t> oom_score_adj;  ///< -1000 to 1000
  std::optional<std::string> cgroup_parent;
  bool strict_limits = false;  ///< a limit that does not hold is an error, for a user too

  Security security;
  std::optional<std::string> gpus;  ///< the text of --gpus
  bool gpus_exclusive = false;      ///< nobody else gets them meanwhile
  bool gpus_bind = true;  ///< to processors and memory beside its GPUs, where nobody names others
  std::optional<GpuMemory> gpu_memory;  ///< of each of them
  std::optional<uint32_t> gpu_cores;    ///< percent of the multiprocessors of each of them
  std::optional<int64_t> wait_gpus;     ///< ns for which a start waits for them; 0: for ever
  std::optional<policy::DriverMode> gpu_driver;  ///< none: the policy's
  std::vector<std::string> devices;              ///< CDI names of --device
  std::vector<HostDevice> host_devices;          ///< paths of --device
  std::vector<std::string> device_cgroup_rules;  ///< "c 195:* rwm"
  gpu::Program program = gpu::Program::berth;    ///< what the user called
  std::optional<MpiRequest> mpi;  ///< none: the container knows nothing of the node's MPI

  std::optional<std::string> stop_signal;  ///< as typed; none: the image's, else TERM
  std::optional<int64_t> stop_timeout;     ///< seconds; -1: for ever; none: ten
  RestartPolicy restart;
  Health health;
  LogSettings log;
  SiteShare site;  ///< of apply_rules()
  bool operator==(const RunRequest&) const = default;
};
/// Whether its image lies in the store.
inline bool is_of_store(const RunRequest& request) {
  return !request.rootfs && !request.image_file;
}
template <class V>
void fields(V& v, RunRequest& r) {
  v.optional("image", r.image);
  v.optional("image_file", r.image_file);
  v.optional("rootfs", r.rootfs);
  v.optional("rootfs_driver", r.rootfs_driver);
  v.optional("rootfs_reason", r.rootfs_reason);
  v.optional("command", r.command);
  v.optional("remove", r.remove);
  v.optional("interactive", r.interactive);
  v.optional("terminal", r.terminal);
  v.optional("read_only", r.read_only);
  v.optional("init", r.init);
  v.optional("name", r.name);
  v.optional("hostname", r.hostname);
  v.optional("domainname", r.domainname);
  v.optional("user", r.user);
  v.optional("group_add", r.group_add);
  v.optional("workdir", r.workdir);
  v.optional("entrypoint", r.entrypoint);
  v.optional("environment", r.environment);
  v.optional("inherited", r.inherited);
  v.optional("labels", r.labels);
  v.optional("annotations", r.annotations);
  v.optional("volumes", r.volumes);
  v.optional("tmpfs", r.tmpfs);
  v.optional("image_mounts", r.image_mounts);
  v.optional("volumes_from", r.volumes_from);
  v.always("network", r.network);
  v.optional("network_asked", r.network_asked);
  v.optional("network_container", r.network_container);
  v.optional("networks", r.networks);
  v.optional("mac_address", r.mac_address);
  v.always("pid", r.pid);
  v.always("ipc", r.ipc);
  v.always("uts", r.uts);
  v.always("userns", r.userns);
  v.always("cgroupns", r.cgroupns);
  v.optional("add_host", r.add_host);
  v.optional("dns", r.dns);
  v.optional("dns_search", r.dns_search);
  v.optional("dns_option", r.dns_option);
  v.optional("expose", r.expose);
  v.optional("publish", r.publish);
  v.optional("publish_all", r.publish_all);
  v.always("limits", r.limits);
  v.optional("shm_bytes", r.shm_bytes);
  v.optional("ulimits", r.ulimits);
  v.optional("sysctl", r.sysctl);
  v.optional("oom_score_adj", r.oom_score_adj);
  v.optional("cgroup_parent", r.cgroup_parent);
  v.optional("strict_limits", r.strict_limits);
  v.always("security", r.security);
  v.optional("gpus", r.gpus);
  v.optional("gpus_exclusive", r.gpus_exclusive);
  v.always("gpus_bind", r.gpus_bind);
  v.optional("gpu_memory", r.gpu_memory);
  v.optional("gpu_cores", r.gpu_cores);
  v.optional("wait_gpus", r.wait_gpus);
  v.optional("gpu_driver", r.gpu_driver);
  v.optional("devices", r.devices);
  v.optional("host_devices", r.host_devices);
  v.optional("device_cgroup_rules", r.device_cgroup_rules);
  v.always("program", r.program);
  v.optional("mpi", r.mpi);
  v.optional("stop_signal", r.stop_signal);
  v.optional("stop_timeout", r.stop_timeout);
  v.always("restart", r.restart);
  v.always("health", r.health);
  v.always("log", r.log);
  v.always("site", r.site);
  // A member of a newer Berth may be one that takes rights away.
  v.strict();
}

/// The container whose namespaces are shared, as it was named, or "".
std::string joined_container(const RunRequest& request);

/// "--group-add keep-groups": the caller's groups and no others.
bool keeps_groups(const RunRequest& request);
/// Whether one of "NAME=value" is HOME.
bool names_home(const std::vector<std::string>& environment);

inline constexpr const char* kRequestFile = "request.json";
inline constexpr size_t kMaxRequest = size_t{16} << 20;  ///< bytes of a kRequestFile that are read

/// A label of each container that tasks of a Slurm step join; its value is job and step.
inline constexpr const char* kStepLabel = "dev.berth.slurm.step";

enum class PullPolicy { missing, always, never };

/// What one call of `berth run` says and its container does not keep.
struct RunCall {
  bool detach = false;
  PullPolicy pull = PullPolicy::missing;
  std::optional<std::string> platform;  ///< of the image, "linux/arm64"; none: this machine's
  bool force = false;                   ///< pulls also what does not run on this machine
  bool strict = false;                  ///< pulls nothing that runs with a remark
  image::RegistryAccess registry;       ///< for a pull
  bool quiet = false;                   ///< no layer events of a pull
  std::vector<std::string> attach;      ///< of "stdin", "stdout", "stderr"; empty: as docker does
  std::optional<std::string> detach_keys;
  bool signal_proxy = true;             ///< signals that this process gets are passed on
  std::optional<std::string> cid_file;  ///< gets the id
  bool replace = false;  ///< removes a container that has its name, once its image is here
  /// Its first process is berth-hold, which gets our descriptors of slurm/hold.hpp; in front of us.
  bool held = false;
  /// Called with the id when a container in front of us has ended, before it is removed.
  std::function<void(const std::string& id)> ended = nullptr;
  /// A socket of our launcher's, of PMI_FD; in front of us its first process has it as
  /// kPmiDescriptor.
  std::optional<int> pmi_descriptor = std::nullopt;
};
inline constexpr int kPmiDescriptor = 3;

/// Whether -a names "stdin", "stdout" or "stderr", or nothing, which is all of them.
bool is_attached(const RunCall& call, std::string_view stream);

/// The values that `caller` has for the names alone of `environment`: "NAME=value".
std::vector<std::string> inherited_variables(const std::vector<std::string>& environment,
                                             const Environment& caller);

/// Reads a kRequestFile. Errors: corrupt (no such document, a member that this Berth does not
/// know).
Result<RunRequest> parse_run_request(std::string_view text);

}  // namespace berth::engine
