// SPDX-License-Identifier: Apache-2.0
// The request for a container, saved with the container. Every start uses it to decide again
// everything that depends on the machine: GPUs, driver files, mounts.
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
#include "engine/request/volume.hpp"
#include "gpu/grant/sources.hpp"
#include "image/transfer_protocol.hpp"
#include "mpi/abi.hpp"
#include "network/request.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

enum class Network {
  none,
  host,
  container,
  bridge,       ///< private, with outside access: root has a bridge, a user pasta or slirp4netns
  pasta,        ///< private, with this helper, for an ordinary user
  slirp4netns,  ///< the same
};
/// Whether the network namespace is private, and whether it has outside access.
inline bool is_own(Network network) {
  return network != Network::host && network != Network::container;
}
inline bool has_way_out(Network network) {
  return is_own(network) && network != Network::none;
}
std::string to_json_text(const Network& network);
Result<Network> from_json_text(std::string_view text, std::type_identity<Network>);

/// The namespace of one kind that a container uses, as --pid, --ipc and similar flags name it: a
/// new one, the host's or that of another container.
struct NamespaceMode {
  enum class Kind {
    usual,      ///< no flag
    own,        ///< "private"
    host,       ///< "host"
    container,  ///< "container:ID"
    none,       ///< "none", for --ipc: private, without /dev/shm
    shareable,  ///< "shareable", for --ipc: private, but other containers may join
    keep_id,    ///< "keep-id", for --userns: private; the caller keeps their own id
  };
  Kind kind = Kind::usual;
  std::string container = {};        ///< after creation: the full id
  std::optional<uint32_t> uid = {};  ///< of "keep-id:uid=N,gid=N": replaces the caller's
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
  uint32_t most = 0;  ///< for on_failure: the maximum number of restarts; 0: unlimited
  bool operator==(const RestartPolicy&) const = default;
};
template <class V>
void fields(V& v, RestartPolicy& r) {
  v.always("when", r.when);
  v.optional("most", r.most);
  v.strict();
}

/// The flags for the health check. None or 0: the value of the image, else docker's default.
struct Health {
  bool off = false;                    ///< --no-healthcheck
  std::optional<std::string> command;  ///< run by the container's shell
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

/// How the root file system of a container is made from its image.
enum class RootfsDriver { overlay, fuse_overlayfs, copy };
std::string to_json_text(const RootfsDriver& driver);  ///< "overlay", "fuse-overlayfs", "copy"
Result<RootfsDriver> from_json_text(std::string_view text, std::type_identity<RootfsDriver>);

enum class LogDriver { json_file, local, none };
std::string to_json_text(const LogDriver& driver);  ///< "json-file", "local", "none"
Result<LogDriver> from_json_text(std::string_view text, std::type_identity<LogDriver>);

struct LogSettings {
  LogDriver driver = LogDriver::json_file;
  std::optional<uint64_t> max_bytes;  ///< rotates a log file at this size; none: the default
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

/// A device node of the host, requested by path.
struct HostDevice {
  std::string source;          ///< absolute, on the host; a directory means all nodes in it
  std::string destination;     ///< absolute, in the container
  std::string access = "rwm";  ///< a part of "rwm"
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

/// The container's security options.
struct Security {
  bool privileged = false;
  std::vector<std::string> cap_add;  ///< as typed: "ALL", "NET_ADMIN", "cap_net_admin"
  std::vector<std::string> cap_drop;
  bool no_new_privileges = false;
  /// None: docker's profile. Else "unconfined", or the content of a profile, since the profile's
  /// file may be removed later.
  std::optional<std::string> seccomp;
  std::optional<std::string> apparmor;  ///< a profile's name, or "unconfined"
  std::vector<std::string> labels;      ///< SELinux label options: "disable", "type:spc_t", …
  /// Paths that stay visible and writable; "ALL" for all masked and read-only paths.
  std::vector<std::string> unmask;
  std::vector<std::string> mask;  ///< paths to hide in addition
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

/// The additions of the site's rules to the flags, and the outcome of each rule. Decided once, when
/// the container is created.
struct SiteShare {
  std::vector<std::string> environment;         ///< overridden by entries of the request
  std::vector<std::string> forced_environment;  ///< override entries of the request
  std::vector<policy::SiteHook> hooks;
  Limits most;        ///< upper limits, also for `update`
  bool gpus = false;  ///< the site decides on GPUs, also for `update`
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

/// The value of --mpi: whether programs in a container get the image's MPI or the host's.
enum class MpiMode {
  image,      ///< the image's, with the fabric of the node
  automatic,  ///< the host's if it fits, else the image's; "auto"
  host,       ///< the host's, else an error
};
std::string to_json_text(MpiMode mode);
Result<MpiMode> from_json_text(std::string_view text, std::type_identity<MpiMode>);

struct MpiRequest {
  MpiMode mode = MpiMode::image;
  mpi::Rule rule = mpi::Rule::major;
  std::string library_path;  ///< of the caller, to find the host's MPI after "module load"
  std::string program;       ///< the program that each rank runs, if not the container's command
  bool operator==(const MpiRequest&) const = default;
};
template <class V>
void fields(V& v, MpiRequest& m) {
  v.required("mode", m.mode);
  v.required("rule", m.rule);
  v.optional("library_path", m.library_path);
  v.optional("program", m.program);
  v.strict();
}

/// A named network (networks.hpp) that a container joins, or "bridge" in addition to named
/// networks.
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

/// The request for a container; the members are named after the flags. In an Asked
/// (decide/resolve.hpp) names are unresolved. In a Resolved, which request.json contains, nothing
/// depends on the directory or environment of the caller.
struct RunRequest {
  std::string image;                  ///< empty with `rootfs`
  bool image_file = false;            ///< `image` is the absolute path of a squashfs or SIF
  std::optional<std::string> rootfs;  ///< absolute: a directory of the host instead of an image
  std::optional<RootfsDriver> rootfs_driver;  ///< none: overlay
  std::string rootfs_reason;                  ///< why the driver is not overlay
  std::vector<std::string> command;           ///< empty: the image's

  bool remove = false;
  bool interactive = false;
  bool terminal = false;
  bool read_only = false;
  bool init = false;  ///< a small first process reaps orphans

  std::optional<std::string> name;
  std::optional<std::string> hostname;
  std::optional<std::string> domainname;
  std::optional<std::string> user;     ///< "uid", "name", "uid:gid", "name:group"
  std::vector<std::string> group_add;  ///< names, ids, "keep-groups"
  std::optional<std::string> workdir;
  /// None: the image's. An empty string clears it.
  std::optional<std::string> entrypoint;
  /// "K=V", or "K" for the value in `inherited`. Later entries win; those of env-files come first.
  std::vector<std::string> environment;
  /// "K=V" from the environment of the container's creator, for the names in `environment`. A name
  /// without an entry here removes the variable.
  std::vector<std::string> inherited;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  std::vector<Volume> volumes;
  std::vector<Tmpfs> tmpfs;
  std::vector<ImageMount> image_mounts;
  std::vector<std::string> volumes_from;  ///< as typed; resolve() adds their volumes to `volumes`

  Network network = Network::none;
  bool network_asked = false;           ///< the user chose the network; false for a default
  std::string network_container;        ///< for Network::container; after creation: the full id
  std::vector<JoinedNetwork> networks;  ///< for Network::bridge; empty: the default network
  std::string mac_address;              ///< in the first of `networks`, or the default network
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
  bool publish_all = false;  ///< also publishes the image's ports and `expose` at free host ports

  Limits limits;
  std::optional<uint64_t> shm_bytes;  ///< of /dev/shm; none or 0: 64 MiB
  std::vector<Ulimit> ulimits;
  std::map<std::string, std::string> sysctl;
  std::optional<int64_t> oom_score_adj;  ///< -1000 to 1000
  std::optional<std::string> cgroup_parent;
  bool strict_limits = false;  ///< an impossible limit is an error for ordinary users, too

  Security security;
  std::optional<std::string> gpus;  ///< the value of --gpus
  bool gpus_exclusive = false;      ///< no other container may use these GPUs meanwhile
  bool gpus_bind = true;  ///< to processors and memory near the GPUs, unless flags name others
  std::optional<GpuMemory> gpu_memory;  ///< for each GPU
  std::optional<uint32_t> gpu_cores;    ///< percentage of the multiprocessors of each GPU
  std::optional<int64_t> wait_gpus;     ///< ns that a start waits for free GPUs; 0: forever
  std::optional<policy::DriverMode> gpu_driver;  ///< none: the policy's default
  std::vector<std::string> devices;              ///< CDI names of --device
  std::vector<HostDevice> host_devices;          ///< paths of --device
  std::vector<std::string> device_cgroup_rules;  ///< "c 195:* rwm"
  gpu::Program program = gpu::Program::berth;    ///< the command that the user called
  std::optional<MpiRequest> mpi;                 ///< none: nothing of the node's MPI

  std::optional<std::string> stop_signal;  ///< as typed; none: the image's, else TERM
  std::optional<int64_t> stop_timeout;     ///< seconds; -1: forever; none: ten
  RestartPolicy restart;
  Health health;
  LogSettings log;
  SiteShare site;  ///< set by apply_rules()
  bool operator==(const RunRequest&) const = default;
};
/// Whether the image of `request` is in the store: neither a file nor a directory.
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
  // An unknown member of a newer Berth may be one that removes rights.
  v.strict();
}

/// The container that `request` shares a namespace with, as the request names it; "": none.
std::string joined_container(const RunRequest& request);

/// "--group-add keep-groups": the caller's groups and no others.
bool keeps_groups(const RunRequest& request);

inline constexpr const char* kRequestFile = "request.json";
inline constexpr size_t kMaxRequest = size_t{16} << 20;  ///< of a kRequestFile, in bytes

/// A label on each container that the tasks of a Slurm step join; the value names job and step.
inline constexpr const char* kStepLabel = "dev.berth.slurm.step";

enum class PullPolicy { missing, always, never };

/// Options of one call of `berth run` that its container does not keep.
struct RunCall {
  bool detach = false;
  PullPolicy pull = PullPolicy::missing;
  std::optional<std::string> platform;  ///< of the image, "linux/arm64"; none: this machine's
  bool force = false;                   ///< also pulls images that do not run on this machine
  bool strict = false;                  ///< refuses to pull an image unless the verdict is a pass
  image::RegistryAccess registry;       ///< for a pull
  bool quiet = false;                   ///< no layer events during a pull
  std::vector<std::string> attach;      ///< "stdin", "stdout", "stderr"; empty: docker's default
  std::optional<std::string> detach_keys;
  bool signal_proxy = true;             ///< passes signals to this process on to the container
  std::optional<std::string> cid_file;  ///< the file that receives the id
  bool replace = false;  ///< removes a container of the same name once the image is available
  /// The first process is berth-hold, which inherits our descriptors of slurm/hold.hpp; only in the
  /// foreground.
  bool held = false;
  /// Called with the id when a foreground container has ended, before it is removed.
  std::function<void(const std::string& id)> ended = nullptr;
  /// The socket of the launcher, which PMI_FD names. The first process of a foreground container
  /// inherits it as kPmiDescriptor.
  std::optional<int> pmi_descriptor = std::nullopt;
};
inline constexpr int kPmiDescriptor = 3;

/// Whether `stream` is attached: -a names it, or there is no -a.
bool is_attached(const RunCall& call, std::string_view stream);

/// Entrypoint and arguments as one argument list. An entrypoint of the request replaces that of the
/// image and drops the image's arguments. Arguments of the request replace those of the image.
/// Errors: usage (nothing to run).
Result<std::vector<std::string>> make_command(const std::vector<std::string>& image_entrypoint,
                                              const std::vector<std::string>& image_command,
                                              const std::optional<std::string>& entrypoint,
                                              const std::vector<std::string>& command);

/// Parses a kRequestFile. Errors: corrupt (another document, or a member that this Berth does not
/// know).
Result<RunRequest> parse_run_request(std::string_view text);

}  // namespace berth::engine
