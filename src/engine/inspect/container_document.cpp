// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/container_document.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/context/document_values.hpp"
#include "engine/inspect/host_config.hpp"
#include "engine/inspect/network_document.hpp"
#include "json/fields.hpp"
#include "oci/edit.hpp"

namespace berth::engine {
namespace {

/// As in docker, Go's zero time means "never".
std::string time_text(std::optional<int64_t> nanoseconds) {
  if (!nanoseconds) return "0001-01-01T00:00:00Z";
  return berth::format_time(*nanoseconds / kNanosecondsPerSecond,
                            static_cast<uint32_t>(*nanoseconds % kNanosecondsPerSecond));
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
      // No process observed the end of a dead container, so the exit code is unknown.
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

// ---- Config, Mounts ------------------------------------------------------------

std::string name_of(const std::string& entry) {
  return entry.substr(0, entry.find('=') + 1);
}

/// In docker's order: the request's variables, then those of the image that are not overridden.
std::vector<std::string> environment(const ContainerFacts& facts) {
  std::vector<std::string> list;
  for (const std::string& entry : facts.request.environment) {
    if (entry.find('=') != entry.npos) oci::set_env(list, entry);
    for (const std::string& inherited : facts.request.inherited) {
      if (inherited.starts_with(entry + "=")) oci::set_env(list, inherited);
    }
  }
  if (!facts.image_config) return list;
  for (const std::string& entry : facts.image_config->config.env) {
    auto overrides = [&](const std::string& set) { return set.starts_with(name_of(entry)); };
    if (std::ranges::none_of(list, overrides)) list.push_back(entry);
  }
  return list;
}

struct Streams {
  bool stdin_open = false, output = false, terminal = false;
};

json::Value config_value(const oci::ContainerDefaults& config, std::string hostname,
                         std::string domainname, const Streams& streams, const std::string& image,
                         std::optional<int64_t> stop_timeout = {}, const std::string& mac = "") {
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
  if (!mac.empty()) out.emplace_back("MacAddress", mac);
  out.emplace_back("OnBuild", strings_or_null(config.on_build));
  out.emplace_back("Labels", text_map(config.labels));
  if (!config.stop_signal.empty()) out.emplace_back("StopSignal", config.stop_signal);
  if (stop_timeout) out.emplace_back("StopTimeout", *stop_timeout);
  if (!config.shell.empty()) out.emplace_back("Shell", strings(config.shell));
  return out;
}

json::Value mounts(const ContainerFacts& facts) {
  json::Array list;
  for (const Volume& volume : facts.request.volumes) {
    json::Object mount{{"Type", volume.name.empty() ? "bind" : "volume"}};
    if (!volume.name.empty()) mount.emplace_back("Name", volume.name);
    mount.emplace_back("Source",
                       volume.name.empty() ? volume.source : volume_data(facts.root, volume.name));
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
  for (const ImageMount& image : facts.request.image_mounts) {
    list.push_back(json::Object{{"Type", "image"},
                                {"Source", image.source},
                                {"Destination", image.destination},
                                {"Mode", "ro"},
                                {"RW", false},
                                {"Propagation", ""}});
  }
  return list;
}

std::string rootfs_driver_text(const ContainerFacts& facts) {
  return to_json_text(facts.request.rootfs_driver.value_or(RootfsDriver::overlay));
}

json::Value graph_driver(const ContainerFacts& facts) {
  if (facts.request.rootfs_driver == RootfsDriver::copy) {
    return json::Object{{"Data", json::Object{{"MergedDir", facts.directory + "/root"}}},
                        {"Name", rootfs_driver_text(facts)}};
  }
  return json::Object{{"Data", json::Object{{"LowerDir", join(facts.layers, ":")},
                                            {"MergedDir", ""},
                                            {"UpperDir", facts.directory + "/upper"},
                                            {"WorkDir", facts.directory + "/work"}}},
                      {"Name", rootfs_driver_text(facts)}};
}

}  // namespace

oci::ContainerDefaults container_defaults(const ContainerFacts& facts) {
  const RunRequest& r = facts.request;
  oci::ContainerDefaults config;
  if (facts.image_config) config = facts.image_config->config;
  config.env = environment(facts);
  if (r.user) config.user = *r.user;
  if (r.workdir) config.working_dir = *r.workdir;
  if (r.stop_signal) config.stop_signal = *r.stop_signal;
  if (r.entrypoint) {
    config.entrypoint.clear();
    config.cmd.clear();
    if (!r.entrypoint->empty()) config.entrypoint.push_back(*r.entrypoint);
  }
  // "Cmd" has the arguments after the entrypoint, whether they come from the request or from the
  // image.
  if (facts.command.size() >= config.entrypoint.size() &&
      std::equal(config.entrypoint.begin(), config.entrypoint.end(), facts.command.begin())) {
    config.cmd.assign(facts.command.begin() + static_cast<ptrdiff_t>(config.entrypoint.size()),
                      facts.command.end());
  }
  for (const auto& [name, value] : r.labels) config.labels[name] = value;
  add_exposed_ports(r, config);
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
      {"ResolvConfPath", facts.directory + "/resolv.conf"},
      {"HostnamePath", facts.directory + "/hostname"},
      {"HostsPath", facts.directory + "/hosts"},
      {"LogPath", facts.directory + "/log"},
      {"Name", "/" + facts.name},
      {"RestartCount", facts.restarts},
      {"Driver", rootfs_driver_text(facts)},
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
  out.emplace_back("Mounts", mounts(facts));
  Streams streams{r.interactive, false, r.terminal};
  out.emplace_back(
      "Config",
      config_value(container_defaults(facts), r.hostname.value_or(facts.id.substr(0, 12)),
                   r.domainname.value_or(""), streams, facts.image, r.stop_timeout, r.mac_address));
  out.emplace_back("NetworkSettings", network_settings(facts));
  return out;
}

}  // namespace berth::engine
