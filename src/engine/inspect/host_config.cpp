// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/host_config.hpp"

#include "base/text.hpp"
#include "engine/context/document_values.hpp"
#include "engine/inspect/network_document.hpp"

namespace berth::engine {
namespace {

constexpr uint64_t kDefaultShmBytes = uint64_t{64} << 20;

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

/// As with docker: without --memory-swap, the swap is as large as the memory.
json::Value memory_and_swap(const Limits& limits) {
  int64_t asked = limits.memory_swap_bytes.value_or(0);
  return asked != 0 ? asked : static_cast<int64_t>(limits.memory_bytes.value_or(0) * 2);
}

json::Value number(std::optional<uint64_t> value) {
  return value.value_or(0);
}

/// The name of a mode; as in docker, the default is an empty string.
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

/// The value of --gpus in the form that docker's client sends: "all", "2", "device=0,1",
/// "capabilities=…".
json::Value gpu_request(const std::string& text) {
  int64_t count = -1;
  json::Array ids;
  json::Array capabilities{"gpu"};
  std::string driver;
  std::string last;  // in "device=0,1" the "1" belongs to "device"
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
  add("MemorySwap", memory_and_swap(l));
  add("MemorySwappiness", l.memory_swappiness ? json::Value(*l.memory_swappiness) : json::Value());
  add("OomKillDisable", l.oom_kill_disable);
  add("PidsLimit", l.pids ? json::Value(*l.pids) : json::Value());
  add("Ulimits", ulimits(request));
}

}  // namespace

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

json::Value host_config(const ContainerFacts& facts) {
  const RunRequest& r = facts.request;
  json::Object out{
      {"Binds", binds(r)},
      {"ContainerIDFile", ""},
      {"LogConfig", log_value(r.log)},
      {"NetworkMode", network_mode(r)},
      {"PortBindings", port_bindings(r)},
      {"RestartPolicy", json::Object{{"Name", to_json_text(r.restart.when)},
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
      {"PublishAllPorts", r.publish_all},
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

}  // namespace berth::engine
