// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities held: those of the caller; none is used. Hostile input:
// none; texts that become file names are still checked.
#include "runtime/cgroup_limits.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace berth::runtime {
namespace {

using Absent = CgroupWrite::Absent;

std::string number_or_max(int64_t value) {
  return value < 0 ? "max" : std::to_string(value);
}

/// A list of writes that is built member by member.
class Writes {
 public:
  template <class Value>
  void add(std::string limit, std::string controller, std::string file, const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>) {
      list_.push_back({std::move(limit), std::move(controller), std::move(file), value, {}, {}});
    } else {
      add(std::move(limit), std::move(controller), std::move(file), std::to_string(value));
    }
  }
  template <class Value>
  void add_if(std::string limit, std::string controller, std::string file,
              const std::optional<Value>& value) {
    if (value) add(std::move(limit), std::move(controller), std::move(file), *value);
  }
  CgroupWrite& last() { return list_.back(); }
  std::vector<CgroupWrite> take() { return std::move(list_); }

 private:
  std::vector<CgroupWrite> list_;
};

Result<void> check_part_of_name(const std::string& text, const std::string& place) {
  bool plain = !text.empty() && text.find_first_of("/\n") == std::string::npos && text[0] != '.' &&
               text.find('\0') == std::string::npos;
  if (plain) return {};
  return make_error(Kind::corrupt,
                    "linux.resources." + place + ": " + quoted(text) + " cannot name a file");
}

Result<void> check_page_sizes(const oci::Resources& resources) {
  for (size_t i = 0; i < resources.hugepage_limits.size(); ++i) {
    TRY(check_part_of_name(resources.hugepage_limits[i].page_size,
                           "hugepageLimits[" + std::to_string(i) + "].pageSize"));
  }
  return {};
}

/// Reserved pages are counted apart since Linux 5.7; without that the use is limited alone.
void add_hugepages(Writes& writes, const oci::Resources& resources, const std::string& reserved,
                   const std::string& used) {
  for (const auto& limit : resources.hugepage_limits) {
    std::string prefix = "hugetlb." + limit.page_size + ".";
    writes.add("hugepageLimits", "hugetlb", prefix + reserved, limit.limit);
    writes.last().absent = Absent::ignore;
    writes.add("hugepageLimits", "hugetlb", prefix + used, limit.limit);
  }
}

void add_memory_v1(Writes& writes, const oci::Memory& memory) {
  writes.add_if("memory.limit", "memory", "memory.limit_in_bytes", memory.limit);
  writes.add_if("memory.reservation", "memory", "memory.soft_limit_in_bytes", memory.reservation);
  writes.add_if("memory.swap", "memory", "memory.memsw.limit_in_bytes", memory.swap);
  writes.add_if("memory.swappiness", "memory", "memory.swappiness", memory.swappiness);
  if (memory.disable_oom_killer.value_or(false)) {
    writes.add("memory.disableOOMKiller", "memory", "memory.oom_control", std::string("1"));
  }
}

void add_cpu_v1(Writes& writes, const oci::Cpu& cpu) {
  writes.add_if("cpu.shares", "cpu", "cpu.shares", cpu.shares);
  writes.add_if(cpu.quota ? "cpu.quota" : "cpu.period", "cpu", "cpu.cfs_period_us", cpu.period);
  writes.add_if("cpu.quota", "cpu", "cpu.cfs_quota_us", cpu.quota);
  writes.add_if("cpu.burst", "cpu", "cpu.cfs_burst_us", cpu.burst);
  writes.add_if("cpu.realtimePeriod", "cpu", "cpu.rt_period_us", cpu.realtime_period);
  writes.add_if("cpu.realtimeRuntime", "cpu", "cpu.rt_runtime_us", cpu.realtime_runtime);
  writes.add_if("cpu.idle", "cpu", "cpu.idle", cpu.idle);
}

/// Memory and swap are one limit in the spec, two in v2.
Result<void> add_memory_v2(Writes& writes, const oci::Memory& memory) {
  if (memory.limit) {
    writes.add("memory.limit", "memory", "memory.max", number_or_max(*memory.limit));
  }
  if (memory.swap) {
    int64_t swap = *memory.swap;
    if (swap >= 0) {
      if (!memory.limit || *memory.limit < 0) {
        return make_error(Kind::usage, "set memory.swap: it needs a memory.limit");
      }
      swap -= *memory.limit;
      if (swap < 0) return make_error(Kind::usage, "set memory.swap: it is below memory.limit");
    }
    writes.add("memory.swap", "memory", "memory.swap.max", number_or_max(swap));
  }
  if (memory.reservation) {
    writes.add("memory.reservation", "memory", "memory.low", number_or_max(*memory.reservation));
  }
  return {};
}

void add_cpu_v2(Writes& writes, const oci::Cpu& cpu) {
  if (cpu.shares && *cpu.shares != 0) {
    writes.add("cpu.shares", "cpu", "cpu.weight", weight_of_shares(*cpu.shares));
  }
  if (cpu.quota || cpu.period) {
    std::string value = cpu.quota && *cpu.quota > 0 ? std::to_string(*cpu.quota) : "max";
    if (cpu.period) value += " " + std::to_string(*cpu.period);
    writes.add(cpu.quota ? "cpu.quota" : "cpu.period", "cpu", "cpu.max", value);
  }
  writes.add_if("cpu.burst", "cpu", "cpu.max.burst", cpu.burst);
  writes.add_if("cpu.idle", "cpu", "cpu.idle", cpu.idle);
}

void add_cpuset(Writes& writes, const oci::Cpu& cpu) {
  if (!cpu.cpus.empty()) writes.add("cpu.cpus", "cpuset", "cpuset.cpus", cpu.cpus);
  if (!cpu.mems.empty()) writes.add("cpu.mems", "cpuset", "cpuset.mems", cpu.mems);
}

}  // namespace

uint64_t weight_of_shares(uint64_t shares) {
  if (shares <= 2) return 1;
  if (shares >= 262144) return 10000;
  double power = std::log2(static_cast<double>(shares));
  double exponent = (power * power + 125 * power) / 612.0 - 7.0 / 34.0;
  return static_cast<uint64_t>(std::ceil(std::pow(10, exponent)));
}

Result<std::vector<CgroupWrite>> v1_writes(const oci::Resources& resources) {
  TRY(check_page_sizes(resources));
  Writes writes;
  if (resources.memory) add_memory_v1(writes, *resources.memory);
  if (resources.cpu) {
    add_cpu_v1(writes, *resources.cpu);
    add_cpuset(writes, *resources.cpu);
  }
  if (resources.pids) {
    writes.add("pids.limit", "pids", "pids.max", number_or_max(resources.pids->limit));
  }
  if (resources.block_io && resources.block_io->weight.value_or(0) != 0) {
    writes.add("blockIO.weight", "blkio", "blkio.weight", *resources.block_io->weight);
    writes.last().instead = "blkio.bfq.weight";
  }
  add_hugepages(writes, resources, "rsvd.limit_in_bytes", "limit_in_bytes");
  return writes.take();
}

Result<std::vector<CgroupWrite>> v2_writes(const oci::Resources& resources) {
  TRY(check_page_sizes(resources));
  Writes writes;
  if (resources.memory) TRY(add_memory_v2(writes, *resources.memory));
  if (resources.cpu) {
    add_cpu_v2(writes, *resources.cpu);
    add_cpuset(writes, *resources.cpu);
  }
  if (resources.pids) {
    writes.add("pids.limit", "pids", "pids.max", number_or_max(resources.pids->limit));
  }
  if (resources.block_io && resources.block_io->weight.value_or(0) != 0) {
    uint64_t weight = std::clamp<uint64_t>(*resources.block_io->weight, 10, 1000);
    // The scheduler BFQ takes the weight as it is, io.weight has a range of 1 to 10000.
    writes.add("blockIO.weight", "io", "io.weight", 1 + (weight - 10) * 9999 / 990);
    writes.last().instead = "io.bfq.weight";
  }
  add_hugepages(writes, resources, "rsvd.max", "max");
  for (const auto& [file, value] : resources.unified) {
    TRY(check_part_of_name(file, "unified"));
    std::string controller = file.substr(0, file.find('.'));
    writes.add("unified." + file, controller == "cgroup" ? "" : controller, file, value);
  }
  return writes.take();
}

}  // namespace berth::runtime
