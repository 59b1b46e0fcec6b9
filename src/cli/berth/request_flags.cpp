// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/request_flags.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/flag_values.hpp"
#include "engine/context/paths.hpp"
#include "engine/image/file.hpp"
#include "engine/network/attachment.hpp"
#include "engine/network/default_network.hpp"
#include "engine/network/network.hpp"
#include "engine/network/network_store.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/hooks_directory.hpp"
#include "engine/request/security.hpp"
#include "engine/request/text.hpp"
#include "engine/run/run.hpp"
#include "engine/site/environment_file.hpp"

namespace berth::cli {
namespace {

/// `inspect` shows the text as typed.
Result<std::string> read_signal_text(std::string_view text) {
  TRY(engine::parse_signal(text));
  return std::string(text);
}

Result<std::string> check_hooks(std::string_view path) {
  TRY(engine::check_hooks_directory(std::string(path)));
  return std::string(path);
}

/// Accepts one of `words`; for anything else the error is `expected`, unlike with Flag::choices.
ReadValue read_word(std::string& target, std::vector<std::string_view> words,
                    const char* expected) {
  return [&target, words = std::move(words), expected](std::string_view text) -> Result<void> {
    if (std::ranges::find(words, text) == words.end()) {
      return make_error(Kind::usage, expected);
    }
    target = text;
    return {};
  };
}

ReadValue read_time(int64_t& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto time = TRY(engine::parse_duration(text));
    target = time.count();
    return {};
  };
}

/// "true", which a missing value becomes, means without a limit.
Result<void> read_wait(std::string_view text, std::optional<int64_t>& target) {
  if (text == "true") {
    target = 0;
    return {};
  }
  auto time = engine::parse_duration(text);
  bool good = time.ok() && time->count() > 0;
  if (!good) return make_error(Kind::usage, "expected no value, or a time such as 30s or 1h");
  target = time->count();
  return {};
}

ReadValue read_number(int64_t& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto number = parse_i64(text);
    if (!number) return make_error(Kind::usage, "expected a whole number");
    target = *number;
    return {};
  };
}

/// As in docker, an empty name means any name, and a leading slash is ignored.
ReadValue read_name(std::optional<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target.reset();
    if (text.starts_with('/')) text.remove_prefix(1);
    if (!text.empty()) target = std::string(text);
    return {};
  };
}

/// "512m", and "-1" for no limit.
Result<int64_t> parse_swap(std::string_view text) {
  auto bytes = parse_bytes(text);
  if (text == "-1") return -1;
  if (bytes && *bytes <= static_cast<uint64_t>(INT64_MAX)) return static_cast<int64_t>(*bytes);
  return make_error(Kind::usage, "expected a size such as 2g, or -1");
}

FlagTable process_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"detach-keys", 0, "KEYS", "Key sequence that detaches (ctrl-p,ctrl-q)", &o.call.detach_keys},
      {"attach", 'a', "STREAM", "Attach to stdin, stdout or stderr",
       append_to(o.call.attach, engine::parse_stream)},
      {"entrypoint", 0, "COMMAND", "Replace the image's entrypoint; '' clears it", &r.entrypoint},
      {"env", 'e', "NAME[=VALUE]", "Set a variable; NAME alone copies the caller's value",
       &o.environment},
      file_flag("env-file", 0, "Read environment variables from FILE", &o.env_files),
      {"environment",
       0,
       "FILE|NAME",
       "Read settings from a CSCS environment definition file",
       &o.environment_file,
       {},
       Complete::file},
      {"group-add", 0, "GROUP", "Add a group, by name or GID; keep-groups: the caller's",
       &r.group_add},
      {"init", 0, "", "Run an init that forwards signals and reaps processes", &r.init},
      {"interactive", 'i', "", "Keep stdin open", &r.interactive},
      {"sig-proxy", 0, "", "Forward received signals to the command (true)", &o.call.signal_proxy},
      {"stop-signal", 0, "SIGNAL", "Signal to stop the container (the image's, else TERM)",
       read_into(r.stop_signal, read_signal_text)},
      {"stop-timeout", 0, "SECONDS", "Time that 'berth stop' waits (10); -1 to wait forever",
       read_integer(r.stop_timeout)},
      {"tty", 't', "", "Allocate a pseudo-TTY", &r.terminal},
      {"ulimit", 0, "TYPE=SOFT[:HARD]", "Set a ulimit, such as nofile=1024:2048",
       append_to(r.ulimits, engine::parse_ulimit)},
      {"user", 'u', "USER[:GROUP]", "Run as this user", &r.user},
      {"workdir", 'w', "DIR", "Set the working directory", &r.workdir},
  };
}

FlagTable container_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"annotation", 0, "NAME=VALUE", "Add an annotation to the OCI configuration",
       add_to(r.annotations, engine::parse_annotation)},
      file_flag("cidfile", 0, "Write the container's id to FILE, which must not exist",
                &o.call.cid_file),
      {"disable-content-trust", 0, "", "No effect: images are always verified by digest",
       &o.no_trust},
      {"isolation", 0, "NAME", "Only default: other values exist only on Windows",
       read_isolation(": Linux has one isolation, only Windows has a choice")},
      {"label", 'l', "NAME[=VALUE]", "Set a label on the container", &o.labels},
      file_flag("label-file", 0, "Read labels from FILE", &o.label_files),
      {"log-driver", 0, "DRIVER", "Log driver: json-file, local or none",
       read_into(r.log.driver, engine::parse_log_driver)},
      {"log-opt", 0, "NAME=VALUE", "Log option: max-size=BYTES or max-file=NUMBER",
       [&r](std::string_view text) { return engine::parse_log_option(text, r.log); }},
      {"name", 0, "NAME", "Set the container's name", read_name(r.name)},
      {"replace", 0, "", "Remove an existing container with the same name first", &o.call.replace},
      {"platform", 0, "OS/ARCH", "Platform of the image, such as linux/arm64",
       read_platform(o.call.platform)},
      {"force", 0, "", "Pull the image even if it cannot run on this machine", &o.call.force},
      {"strict", 0, "", "Fail if a GPU would be idle or a limit cannot be set", &o.call.strict},
      choice_flag("pull", "WHEN", "When to pull the image: missing, always or never", &o.pull,
                  {"missing", "always", "never"}),
      {"quiet", 'q', "", "Do not show pull progress", &o.call.quiet},
      {"runtime", 0, "NAME", "nvidia: give GPUs that the image's variables ask for",
       read_word(o.runtime, {"berth", "crun", "io.containerd.runc.v2", "nvidia", "runc"},
                 "expected berth, crun, nvidia or runc; GPUs are given by --gpus all, other "
                 "devices by --device")},
      {"hooks-dir", 0, "DIR", "Give GPUs as NVIDIA's hook in DIR would; run no hook",
       append_to(o.hooks_directories, check_hooks)},
      {"restart", 0, "POLICY", "Restart: no, on-failure[:MAX], always or unless-stopped",
       read_into(r.restart, engine::parse_restart)},
      {"rm", 0, "", "Remove the container when it exits", &r.remove},
  };
}

FlagTable health_flags(RequestOptions& o) {
  engine::Health& health = o.request.health;
  return {
      {"health-cmd", 0, "COMMAND", "Command that checks the container's health", &health.command},
      {"health-interval", 0, "TIME", "Time between two health checks (30s)",
       read_time(health.interval)},
      {"health-retries", 0, "NUMBER", "Consecutive failures that make it unhealthy (3)",
       read_number(health.retries)},
      {"health-start-period", 0, "TIME", "Time after the start in which failures do not count",
       read_time(health.start_period)},
      {"health-timeout", 0, "TIME", "Longest time that one health check may take (30s)",
       read_time(health.timeout)},
      {"no-healthcheck", 0, "", "Disable the image's health check", &health.off},
  };
}

FlagTable storage_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"read-only", 0, "", "Mount the root file system read-only", &r.read_only},
      {"rootfs", 0, "", "Use the directory IMAGE as the root file system", &o.rootfs},
      {"shm-size", 0, "BYTES", "Size of /dev/shm (64m)", read_bytes(r.shm_bytes)},
      {"mount", 0, "OPTIONS", "Mount type=bind|volume|tmpfs|image,src=PATH,dst=PATH[,ro]",
       &o.mounts},
      {"tmpfs", 0, "TARGET[:OPTIONS]", "Mount a tmpfs, an empty file system in memory", &o.tmpfs},
      {"volume",
       'v',
       "[SOURCE:]TARGET[:ro]",
       "Mount a volume, or a file or directory from the host",
       &o.volumes,
       {},
       Complete::file},
      {"volumes-from", 0, "CONTAINER[:ro]", "Mount the volumes of another container",
       &r.volumes_from},
  };
}

using engine::NamespaceFlag;

ReadValue read_mode(engine::NamespaceMode& target, NamespaceFlag flag) {
  return read_into(target,
                   [flag](std::string_view text) { return engine::parse_namespace(flag, text); });
}

/// The first network goes to `flags.mode`, further ones to `flags.more`.
Flag network_flag(std::string_view name, std::string_view text, engine::NetworkFlags& flags) {
  auto read = [&flags](std::string_view mode) -> Result<void> {
    if (mode.empty()) return make_error(Kind::usage, "expected a network's name, or no --network");
    if (flags.mode.empty()) {
      flags.mode = mode;
    } else {
      flags.more.emplace_back(mode);
    }
    return {};
  };
  return {name, 0, "NETWORK", text, read, {}, Complete::network};
}

ReadValue read_alias(engine::NetworkFlags& flags) {
  return [&flags](std::string_view text) -> Result<void> {
    TRY(engine::check_network_alias(text));
    flags.aliases.emplace_back(text);
    return {};
  };
}

/// As in docker, an empty address means any address.
ReadValue read_mac_flag(std::string& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = text.empty() ? std::string() : TRY(engine::read_mac(text));
    return {};
  };
}

FlagTable namespace_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"add-host", 0, "NAME:ADDRESS", "Add a line to /etc/hosts",
       append_to(r.add_host, engine::parse_add_host)},
      {"cgroupns", 0, "MODE", "Cgroup namespace: host, private or container:NAME",
       read_mode(r.cgroupns, NamespaceFlag::cgroupns)},
      {"dns", 0, "ADDRESS", "Use this DNS server", append_to(r.dns, engine::parse_dns)},
      {"dns-opt", 0, "OPTION", "The same as --dns-option",
       append_to(r.dns_option, engine::parse_dns_option)},
      {"dns-option", 0, "OPTION", "Set a DNS option in /etc/resolv.conf",
       append_to(r.dns_option, engine::parse_dns_option)},
      {"dns-search", 0, "DOMAIN", "Set a DNS search domain; '.' for none",
       append_to(r.dns_search, engine::parse_domain)},
      {"domainname", 0, "NAME", "Set the container's NIS domain name",
       read_into(r.domainname, engine::parse_domain)},
      {"expose", 0, "PORT[/PROTOCOL]", "Declare a port that the container listens on",
       append_to(r.expose, engine::parse_expose)},
      {"hostname", 'h', "NAME", "Set the container's host name", &r.hostname},
      {"ipc", 0, "MODE", "IPC mode: host, private, none, shareable, container:NAME",
       read_mode(r.ipc, NamespaceFlag::ipc)},
      {"ip", 0, "ADDRESS", "Set the container's IP address in the named network",
       &o.network.address},
      {"mac-address", 0, "ADDRESS", "Set the MAC address, such as 02:42:ac:11:00:09",
       read_mac_flag(o.network.mac)},
      network_flag("net", "The same as --network", o.network),
      {"net-alias", 0, "NAME", "The same as --network-alias", read_alias(o.network)},
      network_flag("network", "Network: a NAME, bridge, host, none or container:NAME", o.network),
      {"network-alias", 0, "NAME", "Add a DNS name for the container in its network",
       read_alias(o.network)},
      {"pid", 0, "MODE", "PID namespace: host, private or container:NAME",
       read_mode(r.pid, NamespaceFlag::pid)},
      {"publish", 'p', "[PORT:]PORT[/udp]", "Publish a container's port to the host",
       &o.network.publish},
      {"publish-all", 'P', "", "Publish all exposed ports to free host ports",
       &o.network.publish_all},
      {"sysctl", 0, "NAME=VALUE", "Set a kernel parameter in the container's namespaces",
       add_to(r.sysctl, engine::parse_sysctl)},
      {"userns", 0, "MODE", "host; keep-id[:uid=N,gid=N] keeps the caller's ids",
       read_mode(r.userns, NamespaceFlag::userns)},
      {"uts", 0, "MODE", "UTS namespace: host, private or container:NAME",
       read_mode(r.uts, NamespaceFlag::uts)},
  };
}

FlagTable own_limit_flags(RequestOptions& o) {
  engine::Limits& l = o.request.limits;
  return {
      {"blkio-weight", 0, "NUMBER", "Block I/O weight, 10 to 1000; 0 sets none", &l.blkio_weight},
      {"blkio-weight-device", 0, "DEVICE:NUMBER", "Block I/O weight for one device",
       append_to(l.blkio_weight_device, engine::parse_device_weight)},
      choice_flag("cgroups", "MODE", "No effect: a cgroup is created where possible", &o.cgroups,
                  {"enabled", "disabled", "no-conmon", "split"}),
      {"cgroup-parent", 0, "PATH", "Create the container's cgroup under PATH",
       &o.request.cgroup_parent},
      {"cpus", 0, "NUMBER", "Limit the number of CPUs, such as 1.5; 0 for no limit",
       read_into(l.cpu_millis, engine::parse_cpus)},
      {"device-read-bps", 0, "DEVICE:BYTES", "Limit reads from a device, in bytes per second",
       append_to(l.device_read_bps, engine::parse_device_bytes)},
      {"device-read-iops", 0, "DEVICE:NUMBER",
       "Limit reads from a device, in operations per second",
       append_to(l.device_read_iops, engine::parse_device_rate)},
      {"device-write-bps", 0, "DEVICE:BYTES", "Limit writes to a device, in bytes per second",
       append_to(l.device_write_bps, engine::parse_device_bytes)},
      {"device-write-iops", 0, "DEVICE:NUMBER",
       "Limit writes to a device, in operations per second",
       append_to(l.device_write_iops, engine::parse_device_rate)},
      {"memory", 'm', "BYTES", "Memory limit, such as 512m; 0 for no limit",
       read_bytes(l.memory_bytes)},
      {"memory-swappiness", 0, "NUMBER", "How eagerly the kernel swaps memory out, 0 to 100",
       read_integer(l.memory_swappiness)},
      {"oom-kill-disable", 0, "", "Disable the OOM killer for the container", &l.oom_kill_disable},
      {"oom-score-adj", 0, "NUMBER", "OOM score adjustment, -1000 (killed last) to 1000 (first)",
       read_integer(o.request.oom_score_adj)},
      {"pids-limit", 0, "NUMBER", "Limit the number of processes; 0 or -1 for no limit",
       read_integer(l.pids)},
  };
}

FlagTable right_flags(RequestOptions& o) {
  engine::RunRequest& r = o.request;
  return {
      {"cap-add", 0, "CAPABILITY", "Add a capability, such as NET_ADMIN, or ALL",
       &r.security.cap_add},
      {"cap-drop", 0, "CAPABILITY", "Drop a capability, such as NET_RAW, or ALL",
       &r.security.cap_drop},
      {"device", 0, "DEVICE", "Add nvidia.com/gpu=0, or /dev/SOURCE[:/dev/TARGET][:rwm]",
       &o.devices},
      {"device-cgroup-rule", 0, "RULE", "Allow access to devices, such as 'c 195:* rwm'",
       append_to(r.device_cgroup_rules, engine::parse_device_rule)},
      {"gpu-cores", 0, "PERCENT", "Limit the share of each GPU's multiprocessors, with MPS",
       [&r](std::string_view text) -> Result<void> {
         r.gpu_cores = TRY(engine::parse_gpu_cores(text));
         return {};
       }},
      choice_flag("gpu-driver", "MODE", "How to add the driver: bind, volume, copy, image or none",
                  &o.gpu_driver, {"bind", "volume", "copy", "image", "none"}),
      {"gpu-memory", 0, "SIZE[,RESERVED]", "Limit, and reserve, memory of each GPU, such as 10g,8g",
       [&r](std::string_view text) -> Result<void> {
         r.gpu_memory = TRY(engine::parse_gpu_memory(text));
         return {};
       }},
      {"gpus", 0, "GPUS", "GPUs: all, N, N,model=M, device=LIST, from:NAME or none", &r.gpus},
      {"gpus-bind", 0, "", "Run on CPUs near the GPUs (default: true)", &r.gpus_bind},
      {"gpus-exclusive", 0, "", "Let no other container use these GPUs", &r.gpus_exclusive},
      {"immutable", 0, "", "The same as --read-only --gpu-driver image", &o.immutable},
      {"mpi", 0, "MODE", "MPI library to use: auto, host, image or none",
       read_word(o.mpi.mode, {"auto", "host", "image", "none"},
                 "expected --mpi auto, --mpi host, --mpi image or --mpi none")},
      choice_flag("mpi-compatibility", "RULE",
                  "Required match with the host's MPI: major, full, strict", &o.mpi.compatibility,
                  {"major", "full", "strict"}),
      {"privileged", 0, "", "Give all capabilities and devices, and mask no paths",
       &r.security.privileged},
      {"wait-gpus", 0, "", "Wait until busy GPUs are free, forever or for =TIME",
       [&r](std::string_view text) { return read_wait(text, r.wait_gpus); }},
      {"security-opt", 0, "OPTION", "Set no-new-privileges, seccomp=FILE, apparmor=NAME, …",
       [&r](std::string_view text) { return engine::parse_security_option(text, r.security); }},
  };
}

Result<std::vector<std::string>> read_entries(const std::vector<std::string>& files,
                                              const std::vector<std::string>& typed) {
  std::vector<std::string> entries;
  for (const std::string& file : files) {
    for (std::string& entry : TRY(engine::read_env_file(file))) entries.push_back(std::move(entry));
  }
  entries.insert(entries.end(), typed.begin(), typed.end());
  return entries;
}

Result<void> read_labels(const RequestOptions& o, engine::RunRequest& request) {
  for (const std::string& entry : TRY(read_entries(o.label_files, o.labels))) {
    auto label = engine::parse_label(entry);
    if (!label.ok()) {
      return make_error(Kind::usage, "invalid label " + quote(entry) + ": " + label.error().what);
    }
    request.labels[label->first] = std::move(label->second);
  }
  return {};
}

// A value that begins with '/' is a path, any other value is the name of a CDI device.
Result<void> read_devices(const RequestOptions& o, engine::RunRequest& request) {
  for (const std::string& text : o.devices) {
    if (!text.starts_with('/')) {
      request.devices.push_back(text);
      continue;
    }
    auto device = engine::parse_host_device(text);
    if (!device.ok()) {
      return make_error(Kind::usage, "--device " + quote(text) + ": " + device.error().what);
    }
    request.host_devices.push_back(std::move(*device));
  }
  return {};
}

Result<void> read_gpu_driver(const RequestOptions& o, engine::RunRequest& request) {
  if (!o.gpu_driver.empty()) {
    request.gpu_driver = TRY(parse_enum<policy::DriverMode>(o.gpu_driver));
  }
  if (!o.immutable) return {};
  bool image = !request.gpu_driver || *request.gpu_driver == policy::DriverMode::image;
  if (!image) {
    return make_error(Kind::usage, "'--immutable' and '--gpu-driver' cannot be used together");
  }
  request.gpu_driver = policy::DriverMode::image;
  request.read_only = true;
  return {};
}

Result<void> read_mounts(const Session& session, const RequestOptions& o,
                         engine::RunRequest& request) {
  for (const std::string& text : o.volumes) {
    request.volumes.push_back(TRY(engine::parse_volume(text, session.working_directory)));
  }
  for (const std::string& text : o.mounts) {
    auto mount = TRY(engine::parse_mount(text));
    if (auto* volume = std::get_if<engine::Volume>(&mount)) {
      request.volumes.push_back(std::move(*volume));
    } else if (auto* image = std::get_if<engine::ImageMount>(&mount)) {
      image->is_file = engine::is_image_path(image->source);
      if (image->is_file) image->source = TRY(engine::find_image_file(image->source));
      request.image_mounts.push_back(std::move(*image));
    } else {
      request.tmpfs.push_back(std::move(std::get<engine::Tmpfs>(mount)));
    }
  }
  for (const std::string& text : o.tmpfs) {
    request.tmpfs.push_back(TRY(engine::parse_tmpfs(text)));
  }
  return {};
}

/// Parses the file of --environment; an empty definition if the flag is absent.
Result<edf::Definition> read_definition(const Session& session, const RequestOptions& o) {
  if (!o.environment_file) return edf::Definition();
  return engine::read_environment_file(session.context.environment, *o.environment_file);
}

/// Inserts the image that an environment file names where a user would type it.
Result<void> name_image(const edf::Definition& definition, const RequestOptions& o,
                        std::vector<std::string>& arguments) {
  std::string image = TRY(engine::image_of(definition));
  if (!image.empty() && o.rootfs) {
    return make_error(Kind::usage,
                      "'--rootfs' and an environment with an image cannot be used together");
  }
  if (!image.empty()) arguments.insert(arguments.begin(), std::move(image));
  if (!arguments.empty()) return {};
  return make_error(Kind::usage, "environment " + quote(*o.environment_file) + " names no image",
                    "an image after it, or 'image = ...' in its file");
}

}  // namespace

FlagTable limit_flags(engine::Limits& l) {
  return {
      {"cpu-period", 0, "MICROSECONDS", "Length of the period for --cpu-quota", &l.cpu_period},
      {"cpu-quota", 0, "MICROSECONDS", "Limit CPU time in each --cpu-period",
       read_integer(l.cpu_quota)},
      {"cpu-rt-period", 0, "MICROSECONDS", "Length of the period for --cpu-rt-runtime",
       &l.cpu_rt_period},
      {"cpu-rt-runtime", 0, "MICROSECONDS", "Limit real-time CPU time in each --cpu-rt-period",
       read_integer(l.cpu_rt_runtime)},
      {"cpu-shares", 'c', "NUMBER", "CPU weight relative to other containers (1024)",
       &l.cpu_shares},
      {"cpuset-cpus", 0, "LIST", "CPUs to run on, such as 0-3,7", &l.cpuset_cpus},
      {"cpuset-mems", 0, "LIST", "NUMA nodes to use memory of, such as 0-1", &l.cpuset_mems},
      {"memory-reservation", 0, "BYTES", "Soft memory limit, for when the host runs short",
       read_bytes(l.memory_reservation_bytes)},
      {"memory-swap", 0, "BYTES", "Limit memory plus swap; -1 for unlimited swap",
       read_into(l.memory_swap_bytes, parse_swap)},
  };
}

Arity request_arity(const RequestOptions& o) {
  return {o.environment_file ? size_t{0} : size_t{1}};
}

std::string container_beside(const RequestOptions& o) {
  constexpr std::string_view kContainer = "container:";
  if (o.network.mode.starts_with(kContainer)) return o.network.mode.substr(kContainer.size());
  return engine::joined_container(o.request);
}

std::string replaced_container(const RequestOptions& o) {
  if (o.dry_run || o.explain || !o.call.replace) return "";
  return o.request.name.value_or("");
}

void sort_flags(FlagTable& table) {
  std::ranges::stable_sort(table, [](const Flag& a, const Flag& b) { return a.name < b.name; });
}

void add_request_flags(FlagTable& table, RequestOptions& o) {
  for (auto make : {process_flags, container_flags, health_flags, storage_flags, namespace_flags,
                    own_limit_flags, right_flags}) {
    FlagTable more = make(o);
    std::move(more.begin(), more.end(), std::back_inserter(table));
  }
  FlagTable limits = limit_flags(o.request.limits);
  std::move(limits.begin(), limits.end(), std::back_inserter(table));
  add_registry_flags(table, o.call.registry);
}

std::string network_footnote(const engine::Environment& environment, const std::string& config) {
  auto usual = engine::default_network(environment, config);
  if (!usual.ok()) return "";
  return "The default network here is '" + engine::to_json_text(usual->network) + "' (" +
         usual->source + ").\n";
}

Result<engine::Asked> read_request(const Session& session, RequestOptions o,
                                   std::vector<std::string> arguments) {
  engine::Asked asked;
  engine::RunRequest& request = asked.request = std::move(o.request);
  edf::Definition definition = TRY(read_definition(session, o));
  TRY(name_image(definition, o, arguments));
  if (o.rootfs) {
    request.rootfs = TRY(engine::absolute_path(arguments[0], session.working_directory));
  } else {
    request.image = std::move(arguments[0]);
    request.image_file = engine::is_image_path(request.image);
    if (request.image_file) request.image = TRY(engine::find_image_file(request.image));
  }
  // With NVIDIA's runtime or hook the image's variables grant GPUs, as in nvidia-docker.
  bool nvidia = o.runtime == "nvidia" || !o.hooks_directories.empty();
  request.program = nvidia ? gpu::Program::nvidia_docker : gpu::program_of(session.program);
  request.command.assign(std::make_move_iterator(arguments.begin() + 1),
                         std::make_move_iterator(arguments.end()));
  if (o.call.replace && !request.name) {
    return make_error(Kind::usage, "'--replace' needs a name", "--replace --name NAME");
  }
  if (!o.hooks_directories.empty()) {
    session.context.log.warn(
        "--hooks-dir: GPUs are given as NVIDIA's hook would give them; no hook is run");
  }
  if (!o.no_trust) {
    return make_error(Kind::unsupported,
                      "'--disable-content-trust=false': signatures are not read");
  }
  // A JSON list is the form of podman and buildah; docker would look it up as a program.
  if (request.entrypoint && request.entrypoint->starts_with('[')) {
    return make_error(Kind::usage, "--entrypoint takes one program; its arguments come after IMAGE",
                      "--entrypoint PROGRAM IMAGE ARG...");
  }
  request.environment = TRY(read_entries(o.env_files, o.environment));
  TRY(read_labels(o, request));
  TRY(read_devices(o, request));
  TRY(read_gpu_driver(o, request));
  TRY(read_mounts(session, o, request));
  if (o.environment_file) {
    TRY(engine::add_definition(definition, session.working_directory, session.context.log,
                               request));
  }
  auto& seccomp = request.security.seccomp;
  // Keeps the profile, not its path: the file may have changed by the next start.
  if (seccomp && *seccomp != "unconfined") seccomp = TRY(engine::read_profile(*seccomp));
  request.strict_limits = o.call.strict;
  if (o.pull == "always") o.call.pull = engine::PullPolicy::always;
  if (o.pull == "never") o.call.pull = engine::PullPolicy::never;
  asked.call = std::move(o.call);
  asked.network = std::move(o.network);
  asked.mpi = std::move(o.mpi);
  asked.variables = std::move(definition.variables);
  return asked;
}

}  // namespace berth::cli
