// SPDX-License-Identifier: Apache-2.0
#include "engine/container/stats.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/state/journal.hpp"
#include "json/value.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/processors.hpp"

namespace berth::engine {
namespace {

constexpr uint64_t kTickNs = 10'000'000;  // USER_HZ is 100 for all of /proc

int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

const json::Value* find(const json::Value* value, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (value != nullptr) value = value->find(name);
  }
  return value;
}

std::optional<uint64_t> number(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const int64_t* found = value->get_if<int64_t>()) return static_cast<uint64_t>(*found);
  if (const uint64_t* found = value->get_if<uint64_t>()) return *found;
  return std::nullopt;
}

/// The sum of one operation over all disks; nothing if not counted.
std::optional<uint64_t> operations(const json::Value* entries, std::string_view name) {
  const json::Array* array = entries != nullptr ? entries->array() : nullptr;
  if (array == nullptr) return std::nullopt;
  uint64_t sum = 0;
  for (const json::Value& entry : *array) {
    const json::Value* op = entry.find("op");
    const std::string* text = op != nullptr ? op->string() : nullptr;
    if (text != nullptr && *text == name) sum += number(entry.find("value")).value_or(0);
  }
  return sum;
}

std::optional<std::string> read_proc(int64_t pid, const char* name) {
  auto text = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/" + name);
  return text.ok() ? std::optional<std::string>(std::move(*text)) : std::nullopt;
}

std::optional<uint64_t> word(std::string_view text, size_t index) {
  auto words = split(trim(text), ' ');
  return index < words.size() ? parse_u64(words[index]) : std::nullopt;
}

/// "read_bytes: 12"
std::optional<uint64_t> line_of(std::string_view text, std::string_view name) {
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with(name)) return parse_u64(trim(line.substr(name.size())));
  }
  return std::nullopt;
}

std::vector<int64_t> processes_of(const Context& context, const std::string& id) {
  std::vector<int64_t> pids;
  auto text = call_runtime(context, {"ps", "--format", "json", id});
  if (!text.ok()) return pids;  // it has just ended
  auto value = json::parse(*text, "processes");
  const json::Array* array = value.ok() ? value->array() : nullptr;
  if (array == nullptr) return pids;
  for (const json::Value& entry : *array) {
    if (auto pid = number(&entry)) pids.push_back(static_cast<int64_t>(*pid));
  }
  return pids;
}

void add(std::optional<uint64_t>& sum, std::optional<uint64_t> more) {
  if (more) sum = sum.value_or(0) + *more;
}

// Parsers for the kernel's tables; pure. Lines that cannot be parsed are skipped.

/// Parses the output of `berth-runtime events --stats`. Does not set at_ns.
Usage read_stats(std::string_view line) {
  Usage usage;
  auto value = json::parse(line, "stats");
  const json::Value* data = value.ok() ? value->find("data") : nullptr;
  usage.cpu_ns = number(find(data, {"cpu", "usage", "total"}));
  usage.memory_bytes = number(find(data, {"memory", "usage", "usage"}));
  usage.memory_limit_bytes = number(find(data, {"memory", "usage", "limit"}));
  // As with docker: without memory that the kernel reclaims first. Cgroup version 1 has the total
  // under this name.
  auto inactive = number(find(data, {"memory", "raw", "total_inactive_file"}));
  if (!inactive) inactive = number(find(data, {"memory", "raw", "inactive_file"}));
  if (usage.memory_bytes && inactive && *inactive < *usage.memory_bytes) {
    *usage.memory_bytes -= *inactive;
  }
  const json::Value* bytes = find(data, {"blkio", "ioServiceBytesRecursive"});
  usage.read_bytes = operations(bytes, "Read");
  usage.written_bytes = operations(bytes, "Write");
  usage.processes = number(find(data, {"pids", "current"}));
  return usage;
}

struct Traffic {
  uint64_t received = 0;
  uint64_t sent = 0;
};
/// /proc/PID/net/dev, except lo.
Traffic read_traffic(std::string_view table) {
  constexpr size_t kSent = 8;  // the ninth number of a line
  Traffic traffic;
  for (std::string_view line : split(table, '\n')) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || trim(line.substr(0, colon)) == "lo") continue;
    auto numbers = split_blank(line.substr(colon + 1));
    if (numbers.size() <= kSent) continue;
    traffic.received += parse_u64(numbers[0]).value_or(0);
    traffic.sent += parse_u64(numbers[kSent]).value_or(0);
  }
  return traffic;
}

/// User and system ticks of /proc/PID/stat; nothing for any other string.
std::optional<uint64_t> read_ticks(std::string_view stat) {
  // The command name in front of these fields may contain blanks and parentheses.
  size_t end = stat.rfind(") ");
  if (end == std::string_view::npos) return std::nullopt;
  auto user = word(stat.substr(end + 2), 11);
  auto system = word(stat.substr(end + 2), 12);
  return user && system ? std::optional<uint64_t>(*user + *system) : std::nullopt;
}

/// Sums over the container's processes, for what the control group does not count.
void measure_processes(const std::vector<int64_t>& pids, Usage& usage) {
  Usage sum;
  for (int64_t pid : pids) {
    if (auto stat = read_proc(pid, "stat")) {
      if (auto ticks = read_ticks(*stat)) add(sum.cpu_ns, *ticks * kTickNs);
    }
    if (auto statm = read_proc(pid, "statm")) {
      if (auto pages = word(*statm, 1)) add(sum.memory_bytes, *pages * sys::page_bytes());
    }
    if (auto io = read_proc(pid, "io")) {
      add(sum.read_bytes, line_of(*io, "read_bytes:"));
      add(sum.written_bytes, line_of(*io, "write_bytes:"));
    }
  }
  if (!usage.memory_bytes) {
    usage.from_processes = sum.memory_bytes.has_value();
    usage.memory_bytes = sum.memory_bytes;
    // If the container has no control group of its own, the time counted so far is that of another
    // group.
    usage.cpu_ns = sum.cpu_ns;
  }
  if (!usage.read_bytes) usage.read_bytes = sum.read_bytes;
  if (!usage.written_bytes) usage.written_bytes = sum.written_bytes;
  if (!usage.processes) usage.processes = pids.size();
}

}  // namespace

std::optional<uint64_t> machine_memory() {
  auto text = sys::read_file(sys::cwd(), "/proc/meminfo");
  if (!text.ok()) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("MemTotal:")) continue;
    line = trim(line.substr(9));
    auto kib = parse_u64(line.substr(0, line.find(' ')));
    return kib ? std::optional<uint64_t>(*kib * 1024) : std::nullopt;
  }
  return std::nullopt;
}

Usage measure_container(const Context& context, const ContainerSummary& container) {
  Usage usage;
  bool runs =
      container.state == ContainerState::running || container.state == ContainerState::paused;
  if (!runs) return usage;
  auto line = call_runtime(context, {"events", "--stats", container.id});
  if (line.ok()) usage = read_stats(*line);
  usage.at_ns = now_ns();
  if (!line.ok()) return usage;  // it has just ended
  std::vector<int64_t> pids;
  if (!usage.memory_bytes || !usage.read_bytes || !usage.processes || !container.pid) {
    pids = processes_of(context, container.id);
    measure_processes(pids, usage);
  }
  int64_t pid = container.pid.value_or(pids.empty() ? 0 : pids.front());
  if (pid > 0) {
    if (auto table = read_proc(pid, "net/dev")) {
      Traffic traffic = read_traffic(*table);
      usage.received_bytes = traffic.received;
      usage.sent_bytes = traffic.sent;
    }
  }
  auto machine = machine_memory();
  if (machine)
    usage.memory_limit_bytes = std::min(usage.memory_limit_bytes.value_or(*machine), *machine);
  return usage;
}

std::optional<double> cpu_percent(const Usage& before, const Usage& after) {
  if (!before.cpu_ns || !after.cpu_ns || after.at_ns <= before.at_ns) return std::nullopt;
  if (*after.cpu_ns < *before.cpu_ns) return 0.0;  // a process that /proc counted has ended
  return 100.0 * static_cast<double>(*after.cpu_ns - *before.cpu_ns) /
         static_cast<double>(after.at_ns - before.at_ns);
}

Result<std::string> container_processes(const Context& context, std::string_view reference,
                                        const std::vector<std::string>& ps_arguments) {
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.state == ContainerState::restarting) {
    return make_error(Kind::usage, "Container " + summary.name +
                                       " is restarting, wait until the container is running");
  }
  if (summary.state != ContainerState::running && summary.state != ContainerState::paused) {
    return make_error(Kind::usage, "Container " + summary.name + " is not running");
  }
  std::vector<std::string> words = {"ps", summary.id};
  emit_container_event(context.paths, summary.id, "top");
  words.insert(words.end(), ps_arguments.begin(), ps_arguments.end());
  return call_runtime(context, std::move(words));
}

}  // namespace berth::engine
