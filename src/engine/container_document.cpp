// SPDX-License-Identifier: Apache-2.0
#include "engine/container_document.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/run.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kDefaultShmBytes = uint64_t{64} << 20;

/// Go's zero time stands for "never".
std::string time_text(std::optional<int64_t> nanoseconds) {
  if (!nanoseconds) return "0001-01-01T00:00:00Z";
  return format_time(*nanoseconds / kSecond, static_cast<uint32_t>(*nanoseconds % kSecond));
}

json::Value strings(const std::vector<std::string>& texts) {
  return json::Array(texts.begin(), texts.end());
}

/// What nobody has asked for is null for docker, not an empty list.
json::Value strings_or_null(const std::vector<std::string>& texts) {
  return texts.empty() ? json::Value() : strings(texts);
}

json::Value text_map(const std::map<std::string, std::string>& map) {
  json::Object object;
  for (const auto& [name, value] : map) object.emplace_back(name, value);
  return object;
}

template <class Map>
json::Value empty_objects(const Map& map) {
  json::Object object;
  for (const auto& [name, nothing] : map) object.emplace_back(name, json::Object{});
  return object;
}

json::Value number(std::optional<uint64_t> value) {
  return value.value_or(0);
}

json::Value state_value(const ContainerFacts& facts) {
  bool alive = facts.state == "running" || facts.state == "paused" || facts.state == "restarting";
  json::Object state{
      {"Status", facts.state},
      {"Running", alive},
      {"Paused", facts.state == "paused"},
      {"Restarting", facts.state == "restarting"},
      {"OOMKilled", facts.oom_killed},
      {"Dead", facts.state == "dead"},
      {"Pid", facts.pid.value_or(0)},
      // Nobody saw the end of what is dead: no number would be true.
      {"ExitCode", facts.state == "dead" && !facts.exit_code
                       ? json::Value()
                       : json::Value(facts.exit_code.value_or(0))},
      {"Error", facts.error},
      {"StartedAt", time_text(facts.started)},
      {"FinishedAt", time_text(facts.finished)},
  };
  if (facts.health) state.emplace_back("Health", *facts.health);
  return state;
}

// ---- HostConfig ---------------------------------------------------------------------------------

std::string bind_text(const Volume& volume) {
  std::string options = volume.read_only ? "ro" : "";
  auto add = [&options](std::string_view option) {
    options += (options.empty() ? "" : ",") + std::string(option);
  };
  if (volume.propagation != "rprivate") add(volume.propagation);
  if (volume.relabel == Relabel::shared) add("z");
  if (volume.relabel == Relabel::own) add("Z");
  if (volume.no_copy) add("nocopy");
  const std::string& source = volume.name.empty() ? volume.source : volume.name;
  return source + ":" + volume.destination + (options.empty() ? "" : ":" + options);
}

json::Value binds(const RunRequest& request) {
  json::Array list;
  for (const Volume& volume : request.volumes) {
    if (!volume.anonymous) list.emplace_back(bind_text(volume));
  }
  return list.empty() ? json::Value() : json::Value(std::move(list));
}

json::Value log_value(const LogSettings& log) {
  json::Object options;
  if (log.max_bytes) options.emplace_back("max-size", std::to_string(*log.max_bytes));
  if (log.max_files) options.emplace_back("max-file", std::to_string(*log.max_files));
  return json::Object{{"Type", to_json_text(log.driver)}, {"Config", std::move(options)}};
}

std::string network_mode(const RunRequest& request) {
  if (request.network == Network::container) return "container:" + request.network_container;
  return to_json_text(request.network);
}

/// Docker has no word where nobody said anything.
std::string mode_text(const NamespaceMode& mode, std::string_view usual = "") {
  if (mode.kind == NamespaceMode::Kind::usual) return std::string(usual);
  return to_json_text(mode);
}

json::Value device_values(const std::vector<DeviceValue>& devices, std::string_view name) {
  if (devices.empty()) return nullptr;
  json::Array list;
  for (const DeviceValue& device : devices) {
    list.push_back(json::Object{{"Path", device.path}, {std::string(name), device.value}});
  }
  return list;
}

json::Value host_devices(const RunRequest& request) {
  json::Array list;
  for (const HostDevice& device : request.host_devices) {
    list.push_back(json::Object{{"PathOnHost", device.source},
                                {"PathInContainer", device.destination},
                                {"CgroupPermissions", device.access}});
  }
  return list;
}

/// The text of --gpus as docker's client sends it on: "all", "2", "device=0,1", "capabilities=…".
json::Value gpu_request(const std::string& text) {
  int64_t count = -1;
  json::Array ids;
  json::Array capabilities{"gpu"};
  std::string driver;
  std::string last;  // "device=0,1": what has no name belongs to the one before
  std::string plain = text;
  std::erase(plain, '"');
  for (std::string_view part : split(plain, ',')) {
    size_t equals = part.find('=');
    std::string name(part.substr(0, equals));
    std::string value(equals == part.npos ? part : part.substr(equals + 1));
    if (equals != part.npos) last = name;
    bool counts = equals == part.npos && last.empty();
    if (counts || name == "count") {
      count = parse_i64(value).value_or(-1);
    } else if (last == "device") {
      ids.emplace_back(value);
      count = 0;
    } else if (last == "capabilities") {
      if (value != "gpu") capabilities.emplace_back(value);
    } else if (last == "driver") {
      driver = value;
    }
  }
  return json::Object{{"Driver", driver},
                      {"Count", count},
                      {"DeviceIDs", ids.empty() ? json::Value() : json::Value(std::move(ids))},
                      {"Capabilities", json::Array{json::Value(std::move(capabilities))}},
                      {"Options", json::Object{}}};
}

json::Value device_requests(const RunRequest& request) {
  json::Array list;
  if (request.gpus && *request.gpus != "none") list.push_back(gpu_request(*request.gpus));
  if (!request.devices.empty()) {
    list.push_back(json::Object{{"Driver", "cdi"},
                                {"Count", 0},
                                {"DeviceIDs", strings(request.devices)},
                                {"Capabilities", nullptr},
                                {"Options", nullptr}});
  }
  return list.empty() ? json::Value() : json::Value(std::move(list));
}

json::Value ulimits(const RunRequest& request) {
  if (request.ulimits.empty()) return nullptr;
  json::Array list;
  for (const Ulimit& limit : request.ulimits) {
    list.push_back(json::Object{{"Name", limit.name}, {"Hard", limit.hard}, {"Soft", limit.soft}});
  }
  return list;
}

json::Value security_options(const Security& security) {
  std::vector<std::string> options;
  if (security.no_new_privileges) options.emplace_back("no-new-privileges");
  if (security.seccomp) options.push_back("seccomp=" + *security.seccomp);
  if (security.apparmor) options.push_back("apparmor=" + *security.apparmor);
  for (const std::string& label : security.labels) options.push_back("label=" + label);
  for (const std::string& path : security.unmask) options.push_back("unmask=" + path);
  for (const std::string& path : security.mask) options.push_back("mask=" + path);
  return strings_or_null(options);
}

std::string restart_name(Restart when) {
  return to_json_text(when);
}

void add_limits(json::Object& out, const RunRequest& request) {
  const Limits& l = request.limits;
  auto add = [&out](std::string_view name, json::Value value) {
    out.emplace_back(std::string(name), std::move(value));
  };
  add("CpuShares", number(l.cpu_shares));
  add("Memory", number(l.memory_bytes));
  add("NanoCpus", number(l.cpu_millis ? std::optional(*l.cpu_millis * 1'000'000) : std::nullopt));
  add("CgroupParent", request.cgroup_parent.value_or(""));
  add("BlkioWeight", number(l.blkio_weight));
  add("BlkioWeightDevice", device_values(l.blkio_weight_device, "Weight"));
  add("BlkioDeviceReadBps", device_values(l.device_read_bps, "Rate"));
  add("BlkioDeviceWriteBps", device_values(l.device_write_bps, "Rate"));
  add("BlkioDeviceReadIOps", device_values(l.device_read_iops, "Rate"));
  add("BlkioDeviceWriteIOps", device_values(l.device_write_iops, "Rate"));
  add("CpuPeriod", number(l.cpu_period));
  add("CpuQuota", l.cpu_quota.value_or(0));
  add("CpuRealtimePeriod", number(l.cpu_rt_period));
  add("CpuRealtimeRuntime", l.cpu_rt_runtime.value_or(0));
  add("CpusetCpus", l.cpuset_cpus);
  add("CpusetMems", l.cpuset_mems);
  add("Devices", host_devices(request));
  add("DeviceCgroupRules", strings_or_null(request.device_cgroup_rules));
  add("DeviceRequests", device_requests(request));
  add("KernelMemory", 0);
  add("KernelMemoryTCP", 0);
  add("MemoryReservation", number(l.memory_reservation_bytes));
  add("MemorySwap", l.memory_swap_bytes.value_or(0));
  add("MemorySwappiness", l.memory_swappiness ? json::Value(*l.memory_swappiness) : json::Value());
  add("OomKillDisable", l.oom_kill_disable);
  add("PidsLimit", l.pids ? json::Value(*l.pids) : json::Value());
  add("Ulimits", ulimits(request));
}

json::Value host_config(const ContainerFacts& facts) {
  const RunRequest& r = facts.request;
  json::Object out{
      {"Binds", binds(r)},
      {"ContainerIDFile", ""},
      {"LogConfig", log_value(r.log)},
      {"NetworkMode", network_mode(r)},
      {"PortBindings", json::Object{}},
      {"RestartPolicy", json::Object{{"Name", restart_name(r.restart.when)},
                                     {"MaximumRetryCount", int64_t{r.restart.most}}}},
      {"AutoRemove", facts.remove},
      {"VolumeDriver", ""},
      {"VolumesFrom", strings_or_null(r.volumes_from)},
      {"CapAdd", strings_or_null(r.security.cap_add)},
      {"CapDrop", strings_or_null(r.security.cap_drop)},
      {"CgroupnsMode", mode_text(r.cgroupns, "private")},
      {"Dns", strings(r.dns)},
      {"DnsOptions", strings(r.dns_option)},
      {"DnsSearch", strings(r.dns_search)},
      {"ExtraHosts", strings_or_null(r.add_host)},
      {"GroupAdd", strings_or_null(r.group_add)},
      {"IpcMode", mode_text(r.ipc, "private")},
      {"Cgroup", ""},
      {"Links", nullptr},
      {"OomScoreAdj", r.oom_score_adj.value_or(0)},
      {"PidMode", mode_text(r.pid)},
      {"Privileged", r.security.privileged},
      {"PublishAllPorts", false},
      {"ReadonlyRootfs", r.read_only},
      {"SecurityOpt", security_options(r.security)},
  };
  if (!r.tmpfs.empty()) {
    json::Object tmpfs;
    for (const Tmpfs& one : r.tmpfs) tmpfs.emplace_back(one.destination, join(one.options, ","));
    out.emplace_back("Tmpfs", std::move(tmpfs));
  }
  out.emplace_back("UTSMode", mode_text(r.uts));
  out.emplace_back("UsernsMode", mode_text(r.userns));
  out.emplace_back("ShmSize", r.shm_bytes.value_or(0) == 0 ? kDefaultShmBytes : *r.shm_bytes);
  if (!r.sysctl.empty()) out.emplace_back("Sysctls", text_map(r.sysctl));
  out.emplace_back("Runtime", "berth-runtime");
  out.emplace_back("ConsoleSize", json::Array{0, 0});
  out.emplace_back("Isolation", "");
  add_limits(out, r);
  out.emplace_back("CpuCount", 0);
  out.emplace_back("CpuPercent", 0);
  out.emplace_back("IOMaximumIOps", 0);
  out.emplace_back("IOMaximumBandwidth", 0);
  out.emplace_back("MaskedPaths", strings_or_null(facts.masked_paths));
  out.emplace_back("ReadonlyPaths", strings_or_null(facts.readonly_paths));
  if (r.init) out.emplace_back("Init", true);
  return out;
}

// ---- Config, Mounts, NetworkSettings ------------------------------------------------------------

std::string name_of(const std::string& entry) {
  return entry.substr(0, entry.find('=') + 1);
}

/// As docker tells them: those that were given, then those of the image that are still true.
std::vector<std::string> environment(const ContainerFacts& facts) {
  std::vector<std::string> list;
  auto find = [&list](const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const std::string& old) { return old.starts_with(name); });
  };
  auto set = [&](const std::string& entry) {
    auto same = find(name_of(entry));
    if (same == list.end()) {
      list.push_back(entry);
    } else {
      *same = entry;
    }
  };
  for (const std::string& entry : facts.request.environment) {
    if (entry.find('=') != entry.npos) set(entry);
    for (const std::string& inherited : facts.request.inherited) {
      if (inherited.starts_with(entry + "=")) set(inherited);
    }
  }
  if (!facts.image_config) return list;
  for (const std::string& entry : facts.image_config->config.env) {
    if (find(name_of(entry)) == list.end()) list.push_back(entry);
  }
  return list;
}

struct Streams {
  bool stdin_open = false, output = false, terminal = false;
};

json::Value config_value(const oci::ContainerDefaults& config, std::string hostname,
                         std::string domainname, const Streams& streams, const std::string& image) {
  json::Object out{
      {"Hostname", std::move(hostname)},
      {"Domainname", std::move(domainname)},
      {"User", config.user},
      {"AttachStdin", streams.output && streams.stdin_open},
      {"AttachStdout", streams.output},
      {"AttachStderr", streams.output},
  };
  if (!config.exposed_ports.empty()) {
    out.emplace_back("ExposedPorts", empty_objects(config.exposed_ports));
  }
  out.emplace_back("Tty", streams.terminal);
  out.emplace_back("OpenStdin", streams.stdin_open);
  out.emplace_back("StdinOnce", streams.output && streams.stdin_open);
  out.emplace_back("Env", strings_or_null(config.env));
  out.emplace_back("Cmd", strings_or_null(config.cmd));
  if (config.healthcheck) out.emplace_back("Healthcheck", json::to_value(*config.healthcheck));
  out.emplace_back("Image", image);
  out.emplace_back("Volumes",
                   config.volumes.empty() ? json::Value() : empty_objects(config.volumes));
  out.emplace_back("WorkingDir", config.working_dir);
  out.emplace_back("Entrypoint", strings_or_null(config.entrypoint));
  out.emplace_back("OnBuild", strings_or_null(config.on_build));
  out.emplace_back("Labels", text_map(config.labels));
  if (!config.stop_signal.empty()) out.emplace_back("StopSignal", config.stop_signal);
  if (!config.shell.empty()) out.emplace_back("Shell", strings(config.shell));
  return out;
}

json::Value mounts(const RunRequest& request) {
  json::Array list;
  for (const Volume& volume : request.volumes) {
    json::Object mount{{"Type", volume.name.empty() ? "bind" : "volume"}};
    if (!volume.name.empty()) mount.emplace_back("Name", volume.name);
    mount.emplace_back("Source", volume.source);
    mount.emplace_back("Destination", volume.destination);
    if (!volume.name.empty()) mount.emplace_back("Driver", "local");
    std::string mode = bind_text(volume);
    mode.erase(0, (volume.name.empty() ? volume.source : volume.name).size() + 1 +
                      volume.destination.size());
    mount.emplace_back("Mode", mode.empty() ? mode : mode.substr(1));
    mount.emplace_back("RW", !volume.read_only);
    mount.emplace_back("Propagation", volume.name.empty() ? volume.propagation : "");
    list.push_back(std::move(mount));
  }
  return list;
}

json::Value port_map(const std::vector<PortSummary>& ports) {
  json::Object map;
  for (const PortSummary& port : ports) {
    std::string name = std::to_string(port.container_port) + "/" + port.protocol;
    auto known = std::find_if(map.begin(), map.end(),
                              [&](const auto& member) { return member.first == name; });
    if (known == map.end()) known = map.emplace(map.end(), name, nullptr);
    if (port.host_port == 0) continue;
    if (known->second.is_null()) known->second = json::Array{};
    known->second.get_if<json::Array>()->push_back(
        json::Object{{"HostIp", port.host_ip}, {"HostPort", std::to_string(port.host_port)}});
  }
  return map;
}

json::Value network_settings(const ContainerFacts& facts) {
  json::Object networks;
  if (facts.request.network != Network::container) {
    networks.emplace_back(network_mode(facts.request), json::Object{{"IPAMConfig", nullptr},
                                                                    {"Links", nullptr},
                                                                    {"Aliases", nullptr},
                                                                    {"NetworkID", ""},
                                                                    {"EndpointID", ""},
                                                                    {"Gateway", ""},
                                                                    {"IPAddress", ""},
                                                                    {"IPPrefixLen", 0},
                                                                    {"IPv6Gateway", ""},
                                                                    {"GlobalIPv6Address", ""},
                                                                    {"GlobalIPv6PrefixLen", 0},
                                                                    {"MacAddress", ""},
                                                                    {"DriverOpts", nullptr}});
  }
  bool alive = facts.state == "running" || facts.state == "paused";
  return json::Object{{"Bridge", ""},
                      {"SandboxID", ""},
                      {"HairpinMode", false},
                      {"LinkLocalIPv6Address", ""},
                      {"LinkLocalIPv6PrefixLen", 0},
                      {"Ports", alive ? port_map(facts.ports) : json::Value(json::Object{})},
                      {"SandboxKey", ""},
                      {"SecondaryIPAddresses", nullptr},
                      {"SecondaryIPv6Addresses", nullptr},
                      {"EndpointID", ""},
                      {"Gateway", ""},
                      {"GlobalIPv6Address", ""},
                      {"GlobalIPv6PrefixLen", 0},
                      {"IPAddress", ""},
                      {"IPPrefixLen", 0},
                      {"IPv6Gateway", ""},
                      {"MacAddress", ""},
                      {"Networks", std::move(networks)}};
}

json::Value graph_driver(const ContainerFacts& facts) {
  return json::Object{{"Data", json::Object{{"LowerDir", join(facts.layers, ":")},
                                            {"MergedDir", ""},
                                            {"UpperDir", facts.directory + "/upper"},
                                            {"WorkDir", facts.directory + "/work"}}},
                      {"Name", "overlay"}};
}

}  // namespace

oci::ContainerDefaults container_defaults(const ContainerFacts& facts) {
  const RunRequest& r = facts.request;
  oci::ContainerDefaults config;
  if (facts.image_config) config = facts.image_config->config;
  config.env = environment(facts);
  if (r.user) config.user = *r.user;
  if (r.workdir) config.working_dir = *r.workdir;
  if (r.stop_signal) config.stop_signal = std::to_string(*r.stop_signal);
  if (r.entrypoint) {
    config.entrypoint.clear();
    config.cmd.clear();
    if (!r.entrypoint->empty()) config.entrypoint.push_back(*r.entrypoint);
  }
  // What runs is the entrypoint and what follows it, whoever said either.
  if (facts.command.size() >= config.entrypoint.size() &&
      std::equal(config.entrypoint.begin(), config.entrypoint.end(), facts.command.begin())) {
    config.cmd.assign(facts.command.begin() + static_cast<ptrdiff_t>(config.entrypoint.size()),
                      facts.command.end());
  }
  for (const auto& [name, value] : r.labels) config.labels[name] = value;
  for (const std::string& port : r.expose) config.exposed_ports[port];
  for (const Volume& volume : r.volumes) {
    if (volume.anonymous) config.volumes[volume.destination];
  }
  if (r.health.off) {
    config.healthcheck = oci::Healthcheck{};
    config.healthcheck->test = {"NONE"};
  } else if (r.health.command) {
    config.healthcheck = oci::Healthcheck{.test = {"CMD-SHELL", *r.health.command},
                                          .interval = r.health.interval,
                                          .timeout = r.health.timeout,
                                          .start_period = r.health.start_period,
                                          .retries = r.health.retries};
  }
  return config;
}

json::Value config_document(const oci::ContainerDefaults& config) {
  return config_value(config, "", "", {}, "");
}

json::Value container_document(const ContainerFacts& facts) {
  const RunRequest& r = facts.request;
  json::Array args;
  for (size_t i = 1; i < facts.command.size(); ++i) args.emplace_back(facts.command[i]);
  json::Object out{
      {"Id", facts.id},
      {"Created", time_text(facts.created)},
      {"Path", facts.command.empty() ? "" : facts.command[0]},
      {"Args", std::move(args)},
      {"State", state_value(facts)},
      {"Image", facts.image_id},
      {"ResolvConfPath", facts.files + "/resolv.conf"},
      {"HostnamePath", facts.files + "/hostname"},
      {"HostsPath", facts.files + "/hosts"},
      {"LogPath", facts.directory + "/log"},
      {"Name", "/" + facts.name},
      {"RestartCount", facts.restarts},
      {"Driver", "overlay"},
      {"Platform", "linux"},
      {"MountLabel", ""},
      {"ProcessLabel", ""},
      {"AppArmorProfile", r.security.apparmor.value_or("")},
      {"ExecIDs", nullptr},
      {"HostConfig", host_config(facts)},
      {"GraphDriver", graph_driver(facts)},
  };
  if (facts.size) {
    out.emplace_back("SizeRw", facts.size->written);
    out.emplace_back("SizeRootFs", facts.size->whole);
  }
  out.emplace_back("Mounts", mounts(r));
  Streams streams{r.interactive, false, r.terminal};
  out.emplace_back(
      "Config", config_value(container_defaults(facts), r.hostname.value_or(facts.id.substr(0, 12)),
                             r.domainname.value_or(""), streams, facts.image));
  out.emplace_back("NetworkSettings", network_settings(facts));
  return out;
}

}  // namespace berth::engine
