// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/check_flags.hpp"

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/context/name.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::engine {
namespace {

using ModeKind = NamespaceMode::Kind;

Error conflict(std::string_view what) {
  return make_error(Kind::usage, "conflicting options: " + std::string(what));
}

Result<void> check_host_name(const RunRequest& request) {
  bool named = request.hostname || request.domainname;
  bool uts_of_others =
      request.uts.kind == ModeKind::host || request.uts.kind == ModeKind::container;
  if (named && uts_of_others) return conflict("hostname and the UTS mode");
  if (request.network != Network::container) return {};
  if (request.hostname) return conflict("hostname and the network mode");
  if (!request.add_host.empty()) {
    return conflict("custom host-to-IP mapping and the network mode");
  }
  bool dns = !request.dns.empty() || !request.dns_search.empty() || !request.dns_option.empty();
  return dns ? Result<void>(conflict("dns and the network mode")) : Result<void>();
}

Result<void> check_sysctls(const RunRequest& request) {
  for (const auto& [name, value] : request.sysctl) {
    bool net = name.starts_with("net.");
    if (net && request.network == Network::host) {
      return make_error(Kind::usage,
                        "sysctl '" + name + "' is not allowed in the network of the host");
    }
    if (!net && request.ipc.kind == ModeKind::host) {
      return make_error(Kind::usage, "sysctl '" + name + "' is not allowed in the host's IPC mode");
    }
  }
  return {};
}

Result<void> check_health(const Health& health) {
  bool any = health.command || health.interval != 0 || health.timeout != 0 ||
             health.start_period != 0 || health.retries != 0;
  if (health.off && any) {
    return make_error(Kind::usage, "--no-healthcheck conflicts with --health-* options");
  }
  constexpr int64_t kLeast = 1'000'000;
  const std::pair<const char*, int64_t> kTimes[] = {{"interval", health.interval},
                                                    {"timeout", health.timeout},
                                                    {"start-period", health.start_period}};
  for (const auto& [name, time] : kTimes) {
    if (time != 0 && time < kLeast) {
      return make_error(Kind::usage, std::string("--health-") + name + " cannot be less than 1ms");
    }
  }
  if (health.retries < 0) {
    return make_error(Kind::usage, "--health-retries cannot be negative");
  }
  return {};
}

Result<void> check_groups(const RunRequest& request) {
  if (!keeps_groups(request) || request.group_add.size() == 1) return {};
  return make_error(
      Kind::usage,
      "the '--group-add keep-groups' option is not allowed with any other --group-add options");
}

Result<std::string> namespace_path(const Context& context, const std::string& id,
                                   std::string_view kind) {
  ContainerSummary container = TRY(get_container(context, id));
  if (container.state != ContainerState::running || !container.pid) {
    return make_error(Kind::usage,
                      "cannot join the " + std::string(kind) +
                          " namespace of a non running container: " + container.id.substr(0, 12));
  }
  std::string name = kind == "network" ? "net" : std::string(kind);
  return "/proc/" + std::to_string(*container.pid) + "/ns/" + name;
}

}  // namespace

Result<void> check_request(const RunRequest& request) {
  if (request.name) TRY(check_name(*request.name));
  if (request.image.empty() && !request.rootfs) {
    return make_error(Kind::usage, "no image was given");
  }
  for (const std::string& device : request.devices) TRY(check_device(device));
  TRY(check_limits(request.limits));
  TRY(check_processors(request.limits));
  TRY(check_host_name(request));
  TRY(check_sysctls(request));
  TRY(check_health(request.health));
  TRY(check_groups(request));
  if (request.remove && request.restart.when != Restart::no) {
    return make_error(Kind::usage, "Conflicting options: --restart and --rm");
  }
  int64_t score = request.oom_score_adj.value_or(0);
  if (score < -1000 || score > 1000) {
    return make_error(Kind::usage, "Invalid value " + std::to_string(score) +
                                       ", range for oom score adj is [-1000, 1000]");
  }
  return {};
}

Result<void> check_call(const RunRequest& request, const RunCall& call) {
  if (call.detach && !call.attach.empty()) {
    return make_error(Kind::usage, "Conflicting options: -a and -d");
  }
  if (request.log.driver == LogDriver::none && (request.log.max_bytes || request.log.max_files)) {
    return make_error(Kind::usage, "invalid logging opts for driver none");
  }
  return {};
}

Result<std::map<std::string, std::string>> find_namespaces(const Context& context,
                                                           const RunRequest& request) {
  std::map<std::string, std::string> out;
  const std::pair<const char*, const NamespaceMode*> kModes[] = {{"pid", &request.pid},
                                                                 {"ipc", &request.ipc},
                                                                 {"uts", &request.uts},
                                                                 {"cgroup", &request.cgroupns}};
  for (const auto& [type, mode] : kModes) {
    if (mode->kind != ModeKind::container) continue;
    out[type] = TRY(namespace_path(context, mode->container, type));
  }
  if (request.network == Network::container) {
    out["network"] = TRY(namespace_path(context, request.network_container, "network"));
  }
  return out;
}

}  // namespace berth::engine
