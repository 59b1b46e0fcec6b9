// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/stats.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

using Counters = std::vector<std::pair<std::string, uint64_t>>;

constexpr uint64_t kNanosecond = 1'000'000'000;

/// The container's directory in one hierarchy; empty if it has none there.
class Source {
 public:
  explicit Source(const sys::Fd* directory) : directory_(directory) {}

  explicit operator bool() const { return directory_ != nullptr; }

  /// Empty if there is no such file.
  std::string text(const std::string& file) const {
    if (directory_ == nullptr) return {};
    auto read = sys::read_file_if_exists(*directory_, file);
    return read.ok() && *read ? std::move(**read) : std::string();
  }
  /// "max" gives the greatest number, as in runc.
  std::optional<uint64_t> number(const std::string& file) const {
    std::string value = text(file);
    if (trim(value) == "max") return UINT64_MAX;
    return parse_u64(trim(value));
  }
  /// As number(), but signed: cpuset.sched_relax_domain_level.
  std::optional<int64_t> signed_number(const std::string& file) const {
    return parse_i64(trim(text(file)));
  }
  Counters counters(const std::string& file) const { return read_counters(text(file)); }
  std::vector<std::string> files() const {
    if (directory_ == nullptr) return {};
    auto names = sys::list_directory(*directory_, ".");
    return names.ok() ? std::move(*names) : std::vector<std::string>();
  }

 private:
  const sys::Fd* directory_;
};

std::optional<uint64_t> find(const Counters& counters, std::string_view key) {
  for (const auto& [name, value] : counters) {
    if (name == key) return value;
  }
  return std::nullopt;
}

void put(json::Object& object, const char* name, std::optional<uint64_t> value) {
  if (value) object.emplace_back(name, *value);
}

void put(json::Object& object, const char* name, json::Array array) {
  if (!array.empty()) object.emplace_back(name, std::move(array));
}

void put(json::Object& object, const char* name, json::Object member) {
  if (!member.empty()) object.emplace_back(name, std::move(member));
}

/// The numbers of a list in the kernel's format.
json::Array numbers_of(std::string_view text) {
  json::Array list;
  for (unsigned number : parse_numbers(text).value_or(Numbers()))
    list.emplace_back(uint64_t{number});
  return list;
}

// ---- cpu ----------------------------------------------------------------------------------------

json::Object cpu_usage_v1(const Source& cpuacct) {
  json::Object usage;
  put(usage, "total", cpuacct.number("cpuacct.usage"));
  json::Array each;
  std::string per_processor = cpuacct.text("cpuacct.usage_percpu");
  for (std::string_view word : split_blank(per_processor)) {
    if (auto value = parse_u64(word)) each.emplace_back(*value);
  }
  put(usage, "percpu", std::move(each));
  json::Array kernel;
  json::Array user;
  std::string table = cpuacct.text("cpuacct.usage_all");  // "cpu user system"
  for (std::string_view line : split(table, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 3 || !parse_u64(words[0])) continue;
    user.emplace_back(parse_u64(words[1]).value_or(0));
    kernel.emplace_back(parse_u64(words[2]).value_or(0));
  }
  put(usage, "percpu_kernel", std::move(kernel));
  put(usage, "percpu_user", std::move(user));
  auto ticks = cpuacct.counters("cpuacct.stat");
  constexpr uint64_t kTick = kNanosecond / 100;  // 1/USER_HZ, which is a constant of the ABI
  usage.emplace_back("kernel", find(ticks, "system").value_or(0) * kTick);
  usage.emplace_back("user", find(ticks, "user").value_or(0) * kTick);
  return usage;
}

json::Object cpu_usage_v2(const Counters& counters) {
  json::Object usage;
  for (auto [name, key] : {std::pair{"total", "usage_usec"}, std::pair{"kernel", "system_usec"},
                           std::pair{"user", "user_usec"}}) {
    if (auto value = find(counters, key)) usage.emplace_back(name, *value * 1000);
  }
  return usage;
}

json::Object cpu_of(const CgroupSet& cgroups) {
  Source cpuacct(cgroups.directory("cpuacct"));
  Source v2(cgroups.directory(""));
  auto counters = v2.counters("cpu.stat");
  json::Object cpu;
  put(cpu, "usage", cpuacct ? cpu_usage_v1(cpuacct) : cpu_usage_v2(counters));
  Source controller(cgroups.directory("cpu"));
  auto limits = controller.counters("cpu.stat");
  json::Object throttling;
  put(throttling, "periods", find(limits, "nr_periods"));
  put(throttling, "throttledPeriods", find(limits, "nr_throttled"));
  put(throttling, "throttledTime", find(limits, "throttled_time"));
  if (auto time = find(limits, "throttled_usec")) {
    throttling.emplace_back("throttledTime", *time * 1000);
  }
  cpu.emplace_back("throttling", std::move(throttling));
  put(cpu, "psi", read_pressure(v2.text("cpu.pressure")));
  return cpu;
}

json::Object cpuset_of(const CgroupSet& cgroups) {
  Source cpuset(cgroups.directory("cpuset"));
  json::Object set;
  std::string kind = cgroups.is_v2("cpuset") ? ".effective" : "";
  put(set, "cpus", numbers_of(cpuset.text("cpuset.cpus" + kind)));
  put(set, "mems", numbers_of(cpuset.text("cpuset.mems" + kind)));
  for (const char* name :
       {"cpu_exclusive", "mem_hardwall", "mem_exclusive", "memory_migrate", "memory_spread_page",
        "memory_spread_slab", "memory_pressure", "sched_load_balance"}) {
    put(set, name, cpuset.number(std::string("cpuset.") + name));
  }
  if (auto level = cpuset.signed_number("cpuset.sched_relax_domain_level")) {
    set.emplace_back("sched_relax_domain_level", *level);
  }
  return set;
}

// ---- memory -------------------------------------------------------------------------------------

json::Object memory_entry_v1(const Source& memory, const std::string& prefix) {
  json::Object entry;
  put(entry, "limit", memory.number(prefix + ".limit_in_bytes"));
  put(entry, "usage", memory.number(prefix + ".usage_in_bytes"));
  put(entry, "max", memory.number(prefix + ".max_usage_in_bytes"));
  put(entry, "failcnt", memory.number(prefix + ".failcnt"));
  return entry;
}

json::Object memory_entry(std::optional<uint64_t> limit, std::optional<uint64_t> usage,
                          std::optional<uint64_t> max) {
  json::Object entry;
  put(entry, "limit", limit);
  put(entry, "usage", usage);
  put(entry, "max", max);
  if (!entry.empty()) entry.emplace_back("failcnt", 0);
  return entry;
}

/// Memory and swap together, as v1 counts them.
json::Object swap_v2(const Source& memory) {
  auto usage = memory.number("memory.swap.current");
  auto limit = memory.number("memory.swap.max");
  if (!usage || !limit) return {};
  auto memory_limit = memory.number("memory.max").value_or(UINT64_MAX);
  bool is_unlimited = *limit == UINT64_MAX || memory_limit == UINT64_MAX;
  return memory_entry(is_unlimited ? UINT64_MAX : *limit + memory_limit,
                      *usage + memory.number("memory.current").value_or(0), std::nullopt);
}

json::Object memory_of(const CgroupSet& cgroups) {
  Source memory(cgroups.directory("memory"));
  bool is_v2 = cgroups.is_v2("memory");
  auto counters = memory.counters("memory.stat");
  json::Object object;
  put(object, "cache", find(counters, is_v2 ? "file" : "cache"));
  if (is_v2) {
    put(object, "usage",
        memory_entry(memory.number("memory.max"), memory.number("memory.current"),
                     memory.number("memory.peak")));
    put(object, "swap", swap_v2(memory));
  } else {
    put(object, "usage", memory_entry_v1(memory, "memory"));
    put(object, "swap", memory_entry_v1(memory, "memory.memsw"));
    put(object, "kernel", memory_entry_v1(memory, "memory.kmem"));
    put(object, "kernelTCP", memory_entry_v1(memory, "memory.kmem.tcp"));
  }
  json::Object raw;
  for (const auto& [name, value] : counters) raw.emplace_back(name, value);
  put(object, "raw", std::move(raw));
  put(object, "psi", read_pressure(Source(cgroups.directory("")).text("memory.pressure")));
  return object;
}

// ---- other controllers
// ---------------------------------------------------------------------------------

json::Object pids_of(const CgroupSet& cgroups) {
  Source pids(cgroups.directory("pids"));
  json::Object object;
  put(object, "current", pids.number("pids.current"));
  auto limit = pids.number("pids.max");
  if (limit && *limit != UINT64_MAX) object.emplace_back("limit", *limit);
  return object;
}

json::Object blkio_v1(const Source& blkio) {
  struct Table {
    const char* member;
    std::vector<const char*> files;  ///< the first one that has entries is used
  };
  const Table tables[] = {
      {"ioServiceBytesRecursive",
       {"blkio.bfq.io_service_bytes_recursive", "blkio.io_service_bytes_recursive",
        "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"}},
      {"ioServicedRecursive",
       {"blkio.bfq.io_serviced_recursive", "blkio.io_serviced_recursive",
        "blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"}},
      {"ioQueueRecursive", {"blkio.bfq.io_queued_recursive", "blkio.io_queued_recursive"}},
      {"ioServiceTimeRecursive",
       {"blkio.bfq.io_service_time_recursive", "blkio.io_service_time_recursive"}},
      {"ioWaitTimeRecursive", {"blkio.bfq.io_wait_time_recursive", "blkio.io_wait_time_recursive"}},
      {"ioMergedRecursive", {"blkio.bfq.io_merged_recursive", "blkio.io_merged_recursive"}},
      {"ioTimeRecursive", {"blkio.bfq.time_recursive", "blkio.time_recursive"}},
      {"sectorsRecursive", {"blkio.bfq.sectors_recursive", "blkio.sectors_recursive"}},
  };
  json::Object object;
  for (const auto& table : tables) {
    json::Array entries;
    for (const char* file : table.files) {
      if (entries.empty()) entries = read_blkio(blkio.text(file));
    }
    put(object, table.member, std::move(entries));
  }
  return object;
}

json::Object blkio_of(const CgroupSet& cgroups) {
  json::Object object;
  if (cgroups.is_v2("io")) {
    std::string table = Source(cgroups.directory("io")).text("io.stat");
    put(object, "ioServiceBytesRecursive", read_io_stat(table, "rbytes", "wbytes"));
    put(object, "ioServicedRecursive", read_io_stat(table, "rios", "wios"));
  } else {
    object = blkio_v1(Source(cgroups.directory("blkio")));
  }
  put(object, "psi", read_pressure(Source(cgroups.directory("")).text("io.pressure")));
  return object;
}

json::Object hugetlb_of(const CgroupSet& cgroups) {
  Source hugetlb(cgroups.directory("hugetlb"));
  bool is_v2 = cgroups.is_v2("hugetlb");
  std::string ending = is_v2 ? ".current" : ".usage_in_bytes";
  json::Object object;
  for (const auto& file : hugetlb.files()) {
    bool is_usage = file.starts_with("hugetlb.") && file.ends_with(ending) &&
                    file.find(".rsvd.") == std::string::npos;
    if (!is_usage) continue;
    std::string prefix = file.substr(0, file.size() - ending.size());
    json::Object entry;
    put(entry, "usage", hugetlb.number(file));
    if (!is_v2) put(entry, "max", hugetlb.number(prefix + ".max_usage_in_bytes"));
    auto refused = is_v2 ? find(hugetlb.counters(prefix + ".events"), "max")
                         : hugetlb.number(prefix + ".failcnt");
    entry.emplace_back("failcnt", refused.value_or(0));
    object.emplace_back(prefix.substr(std::string("hugetlb.").size()), std::move(entry));
  }
  return object;
}

/// "8:0" → {"major": 8, "minor": 0}; nothing for other strings.
std::optional<json::Object> read_device(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto major = parse_u64(text.substr(0, colon));
  auto minor = parse_u64(text.substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  return json::Object{{"major", *major}, {"minor", *minor}};
}

/// The value of "key=value" among `words`.
std::optional<std::string_view> value_of(const std::vector<std::string_view>& words,
                                         std::string_view key) {
  for (std::string_view word : words) {
    if (word.starts_with(key) && word.substr(key.size()).starts_with('=')) {
      return word.substr(key.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> oom_kills(const CgroupSet& cgroups) {
  const sys::Fd* directory = cgroups.directory("memory");
  if (directory == nullptr) return std::nullopt;
  const char* file = cgroups.is_v2("memory") ? "memory.events" : "memory.oom_control";
  auto text = sys::read_file_if_exists(*directory, file);
  if (!text.ok() || !*text) return std::nullopt;
  for (const auto& [name, count] : read_counters(**text)) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

Counters read_counters(std::string_view text) {
  Counters counters;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 2) continue;
    if (auto value = parse_u64(words[1])) counters.emplace_back(words[0], *value);
  }
  return counters;
}

json::Array read_blkio(std::string_view text) {
  json::Array entries;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 2 && words.size() != 3) continue;
    auto entry = read_device(words[0]);
    auto value = parse_u64(words.back());
    if (!entry || !value) continue;  // "Total 12" is the sum of all devices
    if (words.size() == 3) entry->emplace_back("op", std::string(words[1]));
    entry->emplace_back("value", *value);
    entries.emplace_back(std::move(*entry));
  }
  return entries;
}

json::Array read_io_stat(std::string_view text, std::string_view read, std::string_view write) {
  json::Array entries;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.empty()) continue;
    for (auto [operation, key] : {std::pair{"Read", read}, std::pair{"Write", write}}) {
      auto entry = read_device(words[0]);
      auto value = value_of(words, key);
      if (!entry || !value) continue;
      entry->emplace_back("op", operation);
      entry->emplace_back("value", parse_u64(*value).value_or(0));
      entries.emplace_back(std::move(*entry));
    }
  }
  return entries;
}

json::Object read_pressure(std::string_view text) {
  json::Object pressure;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.size() < 2) continue;
    json::Object level;
    for (const char* key : {"avg10", "avg60", "avg300"}) {
      if (auto value = value_of(words, key))
        level.emplace_back(key, parse_decimal(*value).value_or(0));
    }
    if (auto total = value_of(words, "total")) {
      level.emplace_back("total", parse_u64(*total).value_or(0));
    }
    pressure.emplace_back(std::string(words[0]), std::move(level));
  }
  return pressure;
}

json::Object stats_of(const CgroupSet& cgroups) {
  json::Object data;
  data.emplace_back("cpu", cpu_of(cgroups));
  data.emplace_back("cpuset", cpuset_of(cgroups));
  data.emplace_back("memory", memory_of(cgroups));
  data.emplace_back("pids", pids_of(cgroups));
  data.emplace_back("blkio", blkio_of(cgroups));
  data.emplace_back("hugetlb", hugetlb_of(cgroups));
  data.emplace_back("intel_rdt", json::Object());
  data.emplace_back("network_interfaces", nullptr);
  return data;
}

}  // namespace berth::runtime
