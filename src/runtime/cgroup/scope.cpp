// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/scope.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "runtime/cgroup/device_filter.hpp"
#include "runtime/cgroup/limits.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::runtime {
namespace {

using scope::Property;

constexpr const char* kProgram = "berth-scope";
constexpr std::chrono::seconds kScopePatience{90};
constexpr uint64_t kMicrosecond = 1'000'000;

Property number(std::string name, uint64_t value) {
  return {.name = std::move(name), .number = value};
}
Property flag(std::string name, bool value) {
  return {.name = std::move(name), .flag = value};
}
Property text(std::string name, std::string value) {
  return {.name = std::move(name), .text = std::move(value)};
}

/// "max" or a number.
std::optional<uint64_t> parse_limit(std::string_view value) {
  return value == "max" ? UINT64_MAX : parse_u64(value);
}

/// "0-3,5" as bits, the lowest eight first.
std::optional<std::vector<uint8_t>> parse_set(std::string_view list) {
  constexpr uint64_t kMost = 8192;  // as large as CONFIG_NR_CPUS, or larger
  std::vector<uint8_t> bits;
  for (std::string_view range : split(list, ',')) {
    auto ends = split(trim(range), '-');
    auto first = parse_u64(ends.front());
    auto last = parse_u64(ends.back());
    if (ends.size() > 2 || !first || !last || *last >= kMost) return std::nullopt;
    for (uint64_t i = *first; i <= *last; ++i) {
      if (bits.size() <= i / 8) bits.resize(i / 8 + 1);
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (1U << (i % 8)));
    }
  }
  return bits;
}

/// `value` is that of cpu.max: "50000 100000".
void add_quota(std::vector<Property>& properties, std::string_view value) {
  constexpr uint64_t kUsualPeriod = 100'000;
  constexpr uint64_t kPercent = kMicrosecond / 100;
  auto words = split_blank(value);
  if (words.empty()) return;  // the kernel will refuse such a value
  auto quota = parse_limit(words[0]);
  auto period = words.size() > 1 ? parse_u64(words[1]) : kUsualPeriod;
  if (!quota || !period || *period == 0) return;
  uint64_t per_second = UINT64_MAX;
  if (*quota < UINT64_MAX / kMicrosecond) {
    per_second = *quota * kMicrosecond / *period;
    // Rounded up to whole percents here, because systemd rounds down, possibly to zero.
    per_second = (per_second + kPercent - 1) / kPercent * kPercent;
  }
  properties.push_back(number("CPUQuotaPerSecUSec", per_second));
  if (*period != kUsualPeriod) properties.push_back(number("CPUQuotaPeriodUSec", *period));
}

/// The file of cgroup v2 and the property that systemd writes into it.
const std::map<std::string_view, const char*> kNumbers{
    {"memory.max", "MemoryMax"}, {"memory.high", "MemoryHigh"},
    {"memory.low", "MemoryLow"}, {"memory.min", "MemoryMin"},
    {"pids.max", "TasksMax"},    {"memory.swap.max", "MemorySwapMax"},
    {"cpu.weight", "CPUWeight"}, {"io.weight", "IOWeight"},
};

/// systemd has no property for io.bfq.weight, only IOWeight for io.weight.
void add_property(std::vector<Property>& properties, CgroupWrite write) {
  if (write.instead.file == "io.weight") {
    write.file = write.instead.file;
    write.value = write.instead.value;
  }
  if (write.file == "cpu.max") return add_quota(properties, write.value);
  if (write.file == "cpuset.cpus" || write.file == "cpuset.mems") {
    const char* name = write.file == "cpuset.cpus" ? "AllowedCPUs" : "AllowedMemoryNodes";
    if (auto bits = parse_set(write.value)) properties.push_back({.name = name, .bits = *bits});
    return;
  }
  auto known = kNumbers.find(write.file);
  auto value = known == kNumbers.end() ? std::nullopt : parse_limit(write.value);
  if (value) properties.push_back(number(known->second, *value));
}

/// "c 136:* rwm" → "char-136"; nothing for a minor number with any major number.
std::optional<std::string> node_of(std::string_view line) {
  auto words = split_blank(line);
  auto numbers = split(words.at(1), ':');
  std::string_view major = numbers.at(0);
  std::string_view minor = numbers.at(1);
  std::string kind = words[0] == "c" ? "char" : "block";
  if (minor == "*") return kind + "-" + std::string(major);
  if (major == "*") return std::nullopt;
  return "/dev/" + kind + "/" + std::string(words[1]);
}

/// Adds the properties for device rules. False when systemd has no form for these rules; then the
/// properties make systemd enforce none.
Result<bool> add_devices(std::vector<Property>& properties,
                         const std::vector<oci::DeviceRule>& rules,
                         const std::vector<plan::HostNode>& nodes) {
  auto devices = TRY(scope_devices(rules));
  properties.push_back(text("DevicePolicy", devices ? "strict" : "auto"));
  if (devices) {
    add_names(*devices, nodes);
    properties.push_back({.name = "DeviceAllow", .devices = std::move(*devices)});
  }
  return devices.has_value();
}

Result<scope::Answer> ask(scope::Request request) {
  if (request.user) request.runtime_directory = user_manager().value_or("");
  sys::SpawnOptions options;
  std::string directory = TRY(sys::program_directory());
  options.program = TRY(sys::own_program(directory, kProgram, "BERTH_SYSTEMD"));
  options.args = {kProgram};
  options.working_directory = "/";
  auto output = TRY(sys::run_command(std::move(options), json::write(request), kScopePatience));
  auto answer = json::read<scope::Answer>(output.out, kProgram);
  if (!answer.ok()) {
    std::string said = escape_controls(split(trim(output.err), '\n').front());
    if (said.empty()) said = "exit status " + std::to_string(output.status.shell_code());
    return make_error(Kind::io, "run " + quote(kProgram) + ": " + said);
  }
  if (answer->kind) return make_error(kind_from_name(*answer->kind), answer->what);
  return answer;
}

/// The uid of the user outside of our user namespace: the user's manager runs there.
std::optional<uint32_t> outer_uid() {
  uint32_t uid = sys::effective_uid();
  if (sys::in_initial_user_namespace()) return uid;
  auto ranges = sys::mapped_uids();
  if (!ranges.ok()) return std::nullopt;
  for (const auto& range : *ranges) {
    if (uid >= range.inside && uid - range.inside < range.count)
      return range.outside + (uid - range.inside);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> user_manager() {
  std::vector<std::string> places;
  const char* told = std::getenv("XDG_RUNTIME_DIR");
  if (told != nullptr && *told == '/') places.emplace_back(told);
  if (auto uid = outer_uid()) places.push_back("/run/user/" + std::to_string(*uid));
  for (const auto& place : places) {
    for (const char* socket : {"/systemd/private", "/bus"}) {
      // A manager that has ended leaves its socket behind, which refuses connections.
      if (sys::connect_unix(place + socket, sys::SocketType::stream).ok()) return place;
    }
  }
  return std::nullopt;
}

Result<std::vector<Property>> scope_limits(const oci::Resources& resources) {
  std::vector<Property> properties;
  for (const auto& write : TRY(v2_writes(resources))) add_property(properties, write);
  return properties;
}

Result<std::optional<std::vector<scope::Device>>> scope_devices(
    const std::vector<oci::DeviceRule>& rules) {
  std::vector<scope::Device> devices;
  bool is_list = true;  // devices that no rule names are denied
  for (const auto& [file, line] : TRY(device_lines(with_default_devices(rules)))) {
    if (line == "a") {
      is_list = file == "devices.deny";
      devices.clear();
      continue;
    }
    auto node = node_of(line);
    if (file == "devices.deny" || !node) {
      is_list = false;
      continue;
    }
    devices.push_back({*node, line.substr(line.rfind(' ') + 1)});
  }
  if (!is_list) return std::optional<std::vector<scope::Device>>();
  return std::optional(std::move(devices));
}

void add_names(std::vector<scope::Device>& list, const std::vector<plan::HostNode>& nodes) {
  for (const auto& node : nodes) {
    std::string kind = node.type == "b" ? "/dev/block/" : "/dev/char/";
    std::string by_number = kind + std::to_string(node.major) + ":" + std::to_string(node.minor);
    auto allowed =
        std::ranges::find_if(list, [&](const auto& one) { return one.node == by_number; });
    if (allowed == list.end() || !node.path.starts_with("/dev/")) continue;
    auto found = sys::open_at(sys::cwd(), node.path, O_PATH | O_NOFOLLOW);
    if (!found.ok()) continue;
    auto same = sys::is_device(*found, node.type, node.major, node.minor, node.path);
    if (same.ok() && *same) list.push_back({node.path, allowed->access});
  }
}

Result<StartedScope> start_scope(const plan::MakeCgroup& wanted, pid_t pid, const std::string& id) {
  constexpr uint64_t kGrace = 10 * kMicrosecond;  // at shutdown, before SIGKILL
  scope::Request request{
      .verb = "start", .user = wanted.scope->user, .unit = wanted.scope->unit, .pid = pid};
  request.properties = {
      text("Description", "berth container " + id),
      text("Slice", wanted.scope->slice),
      flag("Delegate", true),
      flag("DefaultDependencies", false),
      // A killed container must not leave a failed unit, which would occupy the name.
      text("CollectMode", "inactive-or-failed"),
      flag("CPUAccounting", true),
      flag("MemoryAccounting", true),
      flag("IOAccounting", true),
      flag("TasksAccounting", true),
      number("TimeoutStopUSec", kGrace),
  };
  StartedScope started;
  // A user's manager may not load a device filter, and does not report that it failed.
  if (!wanted.scope->user) {
    started.declares_devices =
        TRY(add_devices(request.properties, wanted.resources.devices, wanted.nodes));
  }
  for (auto& property : TRY(scope_limits(wanted.resources))) {
    request.properties.push_back(std::move(property));
  }
  started.control_group = TRY(ask(request)).control_group;
  return started;
}

Result<void> attach_to_scope(const std::string& unit, bool user, pid_t pid) {
  TRY(ask({.verb = "attach", .user = user, .unit = unit, .pid = pid}));
  return {};
}

Result<void> update_scope(const std::string& unit, bool user, const oci::Resources& resources) {
  scope::Request request{.verb = "update", .user = user, .unit = unit};
  oci::Resources told = resources;
  // Without a new memory limit, the swap value is relative to a limit that systemd knows and we do
  // not.
  if (told.memory && told.memory->limit.value_or(0) == 0) told.memory->swap.reset();
  request.properties = TRY(scope_limits(told));
  if (!resources.devices.empty() && !user) {
    request.properties.push_back({.name = "DeviceAllow", .devices = std::vector<scope::Device>()});
    TRY(add_devices(request.properties, resources.devices, {}));
  }
  if (!request.properties.empty()) TRY(ask(request));
  return {};
}

Result<void> stop_scope(const std::string& unit, bool user) {
  TRY(ask({.verb = "stop", .user = user, .unit = unit}));
  return {};
}

}  // namespace berth::runtime
