// SPDX-License-Identifier: Apache-2.0
#include "engine/site/effects.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "engine/gpu/cdi.hpp"
#include "engine/gpu/host_devices.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/text.hpp"
#include "engine/site/facts.hpp"
#include "gpu/grant/request.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

using policy::Given;
using Strings = std::vector<std::string>;

constexpr std::string_view kByVariable = "env:";

/// Applies the effects to a request, and notes in the verdicts what each effect changed.
class Applier {
 public:
  Applier(const Context& context, const policy::Effects& effects,
          const oci::ContainerDefaults& image, std::vector<policy::Verdict>& verdicts,
          RunRequest& request)
      : context_(context),
        effects_(effects),
        image_(image),
        verdicts_(verdicts),
        asked_(request),
        request_(request) {}

  Result<void> run();

 private:
  Result<void> add_mount(const Given& given);
  Result<void> add_tmpfs(const Given& given);
  Result<void> add_device(const Given& given);
  void add_variables();
  Result<void> set_gpus();
  Result<void> set_user();
  void keep_callers_id(const Given& given);
  Result<void> set_network();
  Result<void> set_limits();
  void set_removal();

  void note(const std::string& rule, const std::string& what) {
    for (policy::Verdict& verdict : verdicts_) {
      if (verdict.rule == rule && verdict.applied) verdict.why += "; " + what;
    }
  }
  /// Whether an existing mount at this destination takes precedence over the rule; if not, removes
  /// it.
  bool is_kept(const Given& given, const std::string& destination);
  /// The value of an effect; for "env:NAME" the value of this variable in the request, nothing if
  /// it is unset or empty.
  std::optional<std::string> resolved(const Given& given) const;

  const Context& context_;
  const policy::Effects& effects_;
  const oci::ContainerDefaults& image_;
  std::vector<policy::Verdict>& verdicts_;
  const RunRequest asked_;
  RunRequest& request_;
  std::map<std::string, bool> places_;  ///< destinations of the rules so far; true: forced
};

std::string what(const Given& given, const char* key) {
  return "rule " + quote(given.rule) + ": " + key + " " + quote(given.text);
}

Result<bool> is_missing(const std::string& path) {
  auto found = sys::stat_entry(sys::cwd(), path);
  // A path that cannot be checked counts as existing.
  return found.ok() ? !found->has_value() : found.error().kind == Kind::not_found;
}

bool Applier::is_kept(const Given& given, const std::string& destination) {
  auto earlier = places_.find(destination);
  bool of_site = earlier != places_.end();
  auto is_there = [&](const auto& mount) { return mount.destination == destination; };
  bool asked = std::ranges::any_of(asked_.volumes, is_there) ||
               std::ranges::any_of(asked_.tmpfs, is_there) ||
               std::ranges::any_of(asked_.image_mounts, is_there);
  bool kept = !given.forced && ((of_site && earlier->second) || (!of_site && asked));
  if (kept) {
    note(given.rule, "another mount is at " + destination);
    return true;
  }
  std::erase_if(request_.volumes, is_there);
  std::erase_if(request_.tmpfs, is_there);
  std::erase_if(request_.image_mounts, is_there);
  places_[destination] = given.forced;
  return false;
}

Result<void> Applier::add_mount(const Given& given) {
  Volume volume = TRY_CTX(parse_volume(given.text, ""), what(given, "mount"));
  volume.must_exist = volume.name.empty();
  if (given.optional && volume.must_exist && TRY(is_missing(volume.source))) {
    note(given.rule, "left out: there is no " + volume.source);
    return {};
  }
  if (!is_kept(given, volume.destination)) request_.volumes.push_back(std::move(volume));
  return {};
}

Result<void> Applier::add_tmpfs(const Given& given) {
  Tmpfs tmpfs = TRY_CTX(parse_tmpfs(given.text), what(given, "tmpfs"));
  if (!is_kept(given, tmpfs.destination)) request_.tmpfs.push_back(std::move(tmpfs));
  return {};
}

Result<void> Applier::add_device(const Given& given) {
  if (!given.text.starts_with('/')) {
    TRY_CTX(check_device(given.text), what(given, "device"));
    auto& names = request_.devices;
    bool there = std::ranges::find(names, given.text) != names.end();
    if (!there) names.push_back(given.text);
    return {};
  }
  HostDevice device = TRY_CTX(parse_host_device(given.text), what(given, "device"));
  if (given.optional && TRY(is_missing(device.source))) {
    note(given.rule, "left out: there is no " + device.source);
    return {};
  }
  auto same = [&](const HostDevice& one) { return one.destination == device.destination; };
  auto& devices = request_.host_devices;
  if (given.forced) std::erase_if(devices, same);
  if (std::ranges::none_of(devices, same)) devices.push_back(std::move(device));
  return {};
}

void Applier::add_variables() {
  std::set<std::string> known;
  for (const Strings* entries : {&image_.env, &asked_.environment}) {
    for (const std::string& entry : *entries) known.insert(std::string(variable_name(entry)));
  }
  Strings& out = request_.site.environment;
  for (const auto& [name, given] : effects_.env_unset) out.push_back(name);
  for (const auto& [name, given] : effects_.env_default) {
    bool unset = effects_.env_unset.contains(name);
    if (unset || !known.contains(name)) out.push_back(name + "=" + given.text);
  }
  for (const auto& [name, given] : effects_.env) out.push_back(name + "=" + given.text);
  for (const auto& [name, given] : effects_.env_force) {
    request_.site.forced_environment.push_back(name + "=" + given.text);
  }
}

std::optional<std::string> Applier::resolved(const Given& given) const {
  if (!given.text.starts_with(kByVariable)) return given.text;
  std::string wanted = given.text.substr(kByVariable.size());
  std::optional<std::string> value;
  for (const std::string& entry : typed_variables(asked_)) {
    if (variable_name(entry) == wanted) value = entry.substr(wanted.size() + 1);
  }
  return value && value->empty() ? std::nullopt : value;
}

Result<void> Applier::set_gpus() {
  if (!effects_.gpus) return {};
  const Given& given = *effects_.gpus;
  if (!given.forced && (asked_.gpus || asks_gpus(asked_))) return {};
  auto text = resolved(given);
  if (!text) return {};
  TRY_CTX(gpu::parse_request(*text), what(given, "gpus"));
  request_.gpus = std::move(*text);
  // Drop all flags that name a GPU in any form, even a GPU that this machine lacks. When the
  // container starts, nodes_by_hand() checks the remaining paths.
  if (given.forced) {
    request_.site.gpus = true;
    std::erase_if(request_.devices,
                  [](const std::string& name) { return name.find("/gpu=") != name.npos; });
    std::erase_if(request_.host_devices, [](const HostDevice& one) {
      return one.source == "/dev/dri" || is_gpu_node({.path = one.source});
    });
  }
  return {};
}

void Applier::keep_callers_id(const Given& given) {
  // Root already has every id.
  if (context_.identity == Identity::root) return;
  if (!joined_container(asked_).empty()) {
    note(given.rule, "the user is that of the container whose namespaces are shared");
    return;
  }
  request_.user.reset();
  request_.userns = {.kind = NamespaceMode::Kind::keep_id};
}

Result<void> Applier::set_user() {
  if (!effects_.user) return {};
  const Given& given = *effects_.user;
  bool said = asked_.user || asked_.userns.kind != NamespaceMode::Kind::usual;
  if (said && !given.forced) return {};
  auto text = resolved(given);
  if (!text) return {};
  if (*text == "caller") {
    keep_callers_id(given);
  } else if (*text == "image") {
    request_.user.reset();
  } else {
    request_.user = std::move(*text);
  }
  return {};
}

Result<void> Applier::set_network() {
  if (!effects_.network) return {};
  const Given& given = *effects_.network;
  if (asked_.network_asked && !given.forced) return {};
  request_.network = TRY_CTX(parse_network(given.text), what(given, "network"));
  request_.network_container.clear();
  request_.networks.clear();
  return {};
}

/// Sets `out` to the site's limit `most` if no limit was requested, and to the lower of both if
/// `forced`.
template <class T>
void limit(const std::optional<T>& asked, T most, bool forced, std::optional<T>& out) {
  if (!asked) {
    out = most;
  } else if (forced) {
    out = policy::lower_limit(*asked, most);
  }
}

/// The limit for memory and swap together: docker's default for --memory.
int64_t twice(uint64_t bytes) {
  return static_cast<int64_t>(bytes * 2);
}

/// Thousandths of a processor, from --cpus or a quota; 0: no limit.
uint64_t cpu_millis_of(const Limits& limits) {
  constexpr uint64_t kUsualPeriod = 100'000;
  constexpr double kMost = 1e15;
  if (limits.cpu_millis.value_or(0) > 0) return *limits.cpu_millis;
  if (limits.cpu_quota.value_or(0) <= 0) return 0;
  uint64_t period = limits.cpu_period.value_or(0) == 0 ? kUsualPeriod : *limits.cpu_period;
  double part = static_cast<double>(*limits.cpu_quota) / static_cast<double>(period);
  return static_cast<uint64_t>(std::min(part * 1000 + 0.999, kMost));  // round up
}

/// The lower of two ulimits, for which 0 is a limit and -1 means no limit.
int64_t lower_ulimit(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::min(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

Result<uint64_t> bytes_of(const Given& given, const char* key) {
  auto bytes = parse_bytes(given.text);
  if (bytes) return *bytes;
  return make_error(Kind::usage, what(given, key) + ": expected a size such as 512m or 2g");
}

Result<void> Applier::set_limits() {
  Limits& limits = request_.limits;
  if (effects_.memory) {
    uint64_t bytes = TRY(bytes_of(*effects_.memory, "memory"));
    limit(asked_.limits.memory_bytes, bytes, effects_.memory->forced, limits.memory_bytes);
    if (effects_.memory->forced) request_.site.most.memory_bytes = bytes;
    auto& swap = limits.memory_swap_bytes;
    if (swap && effects_.memory->forced) swap = policy::lower_limit(*swap, twice(bytes));
  }
  bool by_quota = asked_.limits.cpu_quota || asked_.limits.cpu_period;
  if (effects_.cpus && (!by_quota || effects_.cpus->forced)) {
    uint64_t millis = TRY_CTX(parse_cpus(effects_.cpus->text), what(*effects_.cpus, "cpus"));
    if (effects_.cpus->forced) request_.site.most.cpu_millis = millis;
    bool is_less = by_quota && policy::lower_limit(millis, cpu_millis_of(limits)) != millis;
    if (!is_less) {
      limit(asked_.limits.cpu_millis, millis, effects_.cpus->forced, limits.cpu_millis);
      limits.cpu_quota.reset();
      limits.cpu_period.reset();
    }
  }
  if (effects_.pids_limit) {
    int64_t pids = parse_i64(effects_.pids_limit->text).value_or(0);
    limit(asked_.limits.pids, pids, effects_.pids_limit->forced, limits.pids);
    if (effects_.pids_limit->forced) request_.site.most.pids = pids;
  }
  if (effects_.shm_size) {
    uint64_t bytes = TRY(bytes_of(*effects_.shm_size, "shm-size"));
    limit(asked_.shm_bytes, bytes, effects_.shm_size->forced, request_.shm_bytes);
  }
  for (const Given& given : effects_.ulimits) {
    Ulimit ulimit = TRY_CTX(parse_ulimit(given.text), what(given, "ulimit"));
    auto same = [&](const Ulimit& one) { return one.name == ulimit.name; };
    bool said = std::ranges::any_of(asked_.ulimits, same);
    if (said && !given.forced) continue;
    for (const Ulimit& one : request_.ulimits) {
      if (!given.forced || !same(one)) continue;
      ulimit.soft = lower_ulimit(ulimit.soft, one.soft);
      ulimit.hard = lower_ulimit(ulimit.hard, one.hard);
    }
    std::erase_if(request_.ulimits, same);
    request_.ulimits.push_back(std::move(ulimit));
  }
  TRY_CTX(check_limits(limits), "cannot apply the limits of the site's rules");
  return {};
}

void Applier::set_removal() {
  if (!effects_.remove) return;
  bool remove = effects_.remove->text == "true";
  bool restarts = asked_.restart.when != Restart::no;
  if (remove && restarts) return note(effects_.remove->rule, "it stays: --restart");
  if (remove || effects_.remove->forced) request_.remove = remove;
}

Result<void> Applier::run() {
  if (auto refusal = policy::refusal_of(effects_)) {
    return std::move(*refusal).with_hint("berth policy test IMAGE");
  }
  for (const Given& given : effects_.warnings) {
    context_.log.warn("the site says: " + escape_controls(given.text) + " (rule " +
                      quote(given.rule) + ")");
  }
  for (const Given& given : effects_.mounts) TRY(add_mount(given));
  for (const Given& given : effects_.tmpfs) TRY(add_tmpfs(given));
  for (const Given& given : effects_.devices) TRY(add_device(given));
  add_variables();
  TRY(set_gpus());
  TRY(set_user());
  TRY(set_network());
  TRY(set_limits());
  set_removal();
  for (const auto& [rule, hook] : effects_.hooks) request_.site.hooks.push_back(hook);
  return {};
}

}  // namespace

Result<void> apply_effects(const Context& context, const policy::Effects& effects,
                           const oci::ContainerDefaults& image,
                           std::vector<policy::Verdict>& verdicts, RunRequest& request) {
  return Applier(context, effects, image, verdicts, request).run();
}

Result<void> check_most(const Limits& most, const Limits& limits) {
  auto is_over = [](auto now, auto site) { return policy::lower_limit(now, site) != now; };
  auto over = [](const char* flag, const std::string& site) {
    return make_error(Kind::denied, std::string(flag) + ": the site allows at most " + site);
  };
  if (most.memory_bytes && is_over(limits.memory_bytes.value_or(0), *most.memory_bytes)) {
    return over("--memory", std::to_string(*most.memory_bytes) + " bytes");
  }
  int64_t swap = limits.memory_swap_bytes.value_or(0);
  if (most.memory_bytes && swap != 0 && is_over(swap, twice(*most.memory_bytes))) {
    return over("--memory-swap", std::to_string(*most.memory_bytes * 2) + " bytes");
  }
  if (most.cpu_millis && is_over(cpu_millis_of(limits), *most.cpu_millis)) {
    return over("--cpus", std::to_string(*most.cpu_millis) + " thousandths of a processor");
  }
  if (most.pids && is_over(limits.pids.value_or(0), *most.pids)) {
    return over("--pids-limit", std::to_string(*most.pids));
  }
  return {};
}

std::vector<policy::RuleFault> check_texts(const policy::Rule& rule) {
  std::vector<policy::RuleFault> faults;
  auto look = [&](const char* key, const std::string& text, const auto& result) {
    if (result.ok()) return;
    Error error = result.error();
    error.what = quote(text) + ": " + error.what;
    faults.push_back({key, std::move(error)});
  };
  auto size = [&](const char* key, const std::optional<std::string>& text) {
    if (!text || parse_bytes(*text)) return;
    look(key, *text, Result<void>(make_error(Kind::usage, "expected a size such as 512m or 2g")));
  };
  for (const std::string& text : rule.mounts) {
    // A value that begins with "{home}" must parse as an absolute path.
    std::string filled = text.starts_with("{home}") ? "/" + text : text;
    look("mounts", text, parse_volume(filled, ""));
  }
  for (const std::string& text : rule.tmpfs) look("tmpfs", text, parse_tmpfs(text));
  for (const std::string& text : rule.devices) {
    if (text.starts_with('/')) {
      look("devices", text, parse_host_device(text));
    } else {
      look("devices", text, check_device(text));
    }
  }
  bool by_variable = rule.gpus && rule.gpus->starts_with(kByVariable);
  if (rule.gpus && !by_variable) look("gpus", *rule.gpus, gpu::parse_request(*rule.gpus));
  if (rule.network) look("network", *rule.network, parse_network(*rule.network));
  size("memory", rule.memory);
  size("shm-size", rule.shm_size);
  Limits limits;
  if (rule.memory) limits.memory_bytes = parse_bytes(*rule.memory);
  if (limits.memory_bytes) look("memory", *rule.memory, check_limits(limits));
  if (rule.cpus) look("cpus", *rule.cpus, parse_cpus(*rule.cpus));
  for (const std::string& text : rule.ulimits) look("ulimits", text, parse_ulimit(text));
  return faults;
}

}  // namespace berth::engine
