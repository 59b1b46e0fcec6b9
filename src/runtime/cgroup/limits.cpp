// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities held: those of the caller; none is used. Hostile input:
// none; strings that become file names are still checked.
#include "runtime/cgroup/limits.hpp"

#include <cmath>

#include "base/text.hpp"

namespace berth::runtime {
namespace {

using Absent = CgroupWrite::Absent;

Error invalid(const std::string& place, const std::string& text) {
  return make_error(Kind::corrupt, "linux.resources." + place + ": " + text);
}

std::string at(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

// ---- checks -------------------------------------------------------------------------------------

Result<void> check_part_of_name(const std::string& text, const std::string& place) {
  bool plain = !text.empty() && text.find_first_of("/\n") == std::string::npos && text[0] != '.' &&
               text.find('\0') == std::string::npos;
  return plain ? Result<void>() : invalid(place, quote(text) + " cannot name a file");
}

/// Refuses a name with a blank: the kernel would read it as two words of a line.
Result<void> check_word(const std::string& text, const std::string& place) {
  bool plain = !text.empty() && text.find_first_of(std::string_view(" \t\n\0", 4)) == text.npos;
  return plain ? Result<void>() : invalid(place, "expected a name, got " + quote(text));
}

Result<void> check_not_below_minus_one(std::optional<int64_t> value, const std::string& place) {
  if (value.value_or(0) >= -1) return {};
  return invalid(place, "expected -1 or more, got " + std::to_string(*value));
}

Result<void> check_weight(std::optional<uint32_t> weight, const std::string& place) {
  uint32_t value = weight.value_or(0);
  if (value == 0 || (value >= 10 && value <= 1000)) return {};
  return invalid(place, "expected 10 to 1000, got " + std::to_string(value));
}

Result<void> check_device(int64_t major, int64_t minor, const std::string& place) {
  for (auto [name, number] : {std::pair{"major", major}, std::pair{"minor", minor}}) {
    if (number < 0 || number > UINT32_MAX) {
      return invalid(place + "." + name, "expected a device number, got " + std::to_string(number));
    }
  }
  return {};
}

Result<void> check_memory(const oci::Memory& memory) {
  TRY(check_not_below_minus_one(memory.limit, "memory.limit"));
  TRY(check_not_below_minus_one(memory.reservation, "memory.reservation"));
  TRY(check_not_below_minus_one(memory.swap, "memory.swap"));
  if (memory.swappiness.value_or(0) > 100) {
    return invalid("memory.swappiness",
                   "expected 0 to 100, got " + std::to_string(*memory.swappiness));
  }
  int64_t limit = memory.limit.value_or(0);
  int64_t swap = memory.swap.value_or(0);
  if (limit > 0 && swap > 0 && swap < limit) {
    return invalid("memory.swap", "it counts memory and swap together, and is below memory.limit");
  }
  return {};
}

Result<void> check_rates(const std::vector<oci::DeviceRate>& rates, const std::string& name) {
  for (size_t i = 0; i < rates.size(); ++i) {
    TRY(check_device(rates[i].major, rates[i].minor, at("blockIO." + name, i)));
  }
  return {};
}

Result<void> check_block_io(const oci::BlockIo& block_io) {
  TRY(check_weight(block_io.weight, "blockIO.weight"));
  TRY(check_weight(block_io.leaf_weight, "blockIO.leafWeight"));
  for (size_t i = 0; i < block_io.weight_device.size(); ++i) {
    const auto& device = block_io.weight_device[i];
    std::string place = at("blockIO.weightDevice", i);
    TRY(check_device(device.major, device.minor, place));
    TRY(check_weight(device.weight, place + ".weight"));
    TRY(check_weight(device.leaf_weight, place + ".leafWeight"));
  }
  TRY(check_rates(block_io.throttle_read_bps, "throttleReadBpsDevice"));
  TRY(check_rates(block_io.throttle_write_bps, "throttleWriteBpsDevice"));
  TRY(check_rates(block_io.throttle_read_iops, "throttleReadIOPSDevice"));
  return check_rates(block_io.throttle_write_iops, "throttleWriteIOPSDevice");
}

// ---- writes -------------------------------------------------------------------------------------

std::string number_or_max(int64_t value) {
  return value < 0 ? "max" : std::to_string(value);
}

std::string device_name(int64_t major, int64_t minor) {
  return std::to_string(major) + ":" + std::to_string(minor);
}

/// A list of writes that is built member by member.
class Writes {
 public:
  template <class Value>
  void add(std::string limit, std::string controller, std::string file, const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>) {
      list_.push_back({std::move(limit), std::move(controller), std::move(file), value});
    } else {
      add(std::move(limit), std::move(controller), std::move(file), std::to_string(value));
    }
  }
  /// Zero counts as absent.
  template <class Value>
  void add_if(std::string limit, std::string controller, std::string file,
              const std::optional<Value>& value) {
    if (value && *value != 0) add(std::move(limit), std::move(controller), std::move(file), *value);
  }
  CgroupWrite& last() { return list_.back(); }
  std::vector<CgroupWrite> take() { return std::move(list_); }

 private:
  std::vector<CgroupWrite> list_;
};

/// Zero removes a burst that an update has allowed. Without the file (Linux < 5.14) there is no
/// burst anyway.
void add_burst(Writes& writes, std::string file, const std::optional<uint64_t>& burst) {
  if (!burst) return;
  writes.add("cpu.burst", "cpu", std::move(file), *burst);
  if (*burst == 0) writes.last().absent = CgroupWrite::Absent::ignore;
}

/// Since Linux 5.7 reservations of pages have a limit of their own; before that only the use of
/// pages is limited.
void add_hugepages(Writes& writes, const oci::Resources& resources, const std::string& reserved,
                   const std::string& used) {
  for (const auto& limit : resources.hugepage_limits) {
    std::string prefix = "hugetlb." + limit.page_size + ".";
    writes.add("hugepageLimits", "hugetlb", prefix + reserved, limit.limit);
    writes.last().absent = Absent::ignore;
    writes.add("hugepageLimits", "hugetlb", prefix + used, limit.limit);
  }
}

/// The file is the same in v1 and v2.
void add_rdma(Writes& writes, const oci::Resources& resources) {
  for (const auto& [device, limit] : resources.rdma) {
    std::string line = device;
    if (limit.hca_handles) line += " hca_handle=" + std::to_string(*limit.hca_handles);
    if (limit.hca_objects) line += " hca_object=" + std::to_string(*limit.hca_objects);
    if (line != device) writes.add("rdma." + device, "rdma", "rdma.max", line);
  }
}

void add_cpuset(Writes& writes, const oci::Cpu& cpu) {
  if (!cpu.cpus.empty()) writes.add("cpu.cpus", "cpuset", "cpuset.cpus", cpu.cpus);
  if (!cpu.mems.empty()) writes.add("cpu.mems", "cpuset", "cpuset.mems", cpu.mems);
}

void add_memory_v1(Writes& writes, const oci::Memory& memory) {
  bool is_unlimited = memory.limit.value_or(0) == -1;
  writes.add_if("memory.limit", "memory", "memory.limit_in_bytes", memory.limit);
  writes.add_if("memory.reservation", "memory", "memory.soft_limit_in_bytes", memory.reservation);
  writes.add_if("memory.swap", "memory", "memory.memsw.limit_in_bytes", memory.swap);
  if (is_unlimited && memory.swap.value_or(0) == 0) {
    // Without a memory limit there cannot be a limit of memory and swap.
    writes.add("memory.limit", "memory", "memory.memsw.limit_in_bytes", -1);
    writes.last().absent = Absent::ignore;
  }
  if (memory.swappiness) {
    writes.add("memory.swappiness", "memory", "memory.swappiness", *memory.swappiness);
  }
  if (memory.disable_oom_killer.value_or(false)) {
    writes.add("memory.disableOOMKiller", "memory", "memory.oom_control", std::string("1"));
  }
}

void add_cpu_v1(Writes& writes, const oci::Cpu& cpu) {
  writes.add_if("cpu.shares", "cpu", "cpu.shares", cpu.shares);
  writes.add_if(cpu.quota ? "cpu.quota" : "cpu.period", "cpu", "cpu.cfs_period_us", cpu.period);
  writes.add_if("cpu.quota", "cpu", "cpu.cfs_quota_us", cpu.quota);
  add_burst(writes, "cpu.cfs_burst_us", cpu.burst);
  writes.add_if("cpu.realtimePeriod", "cpu", "cpu.rt_period_us", cpu.realtime_period);
  writes.add_if("cpu.realtimeRuntime", "cpu", "cpu.rt_runtime_us", cpu.realtime_runtime);
  if (cpu.idle) writes.add("cpu.idle", "cpu", "cpu.idle", *cpu.idle);
}

/// With the scheduler BFQ, the files for proportional weights have another name.
void add_weight_v1(Writes& writes, const std::string& limit, const std::string& file,
                   const std::string& bfq, const std::string& value) {
  writes.add(limit, "blkio", file, value);
  if (!bfq.empty()) writes.last().instead = {bfq, value};
}

void add_block_io_v1(Writes& writes, const oci::BlockIo& block_io) {
  if (block_io.weight.value_or(0) != 0) {
    add_weight_v1(writes, "blockIO.weight", "blkio.weight", "blkio.bfq.weight",
                  std::to_string(*block_io.weight));
  }
  writes.add_if("blockIO.leafWeight", "blkio", "blkio.leaf_weight", block_io.leaf_weight);
  for (const auto& device : block_io.weight_device) {
    std::string name = device_name(device.major, device.minor) + " ";
    if (device.weight.value_or(0) != 0) {
      add_weight_v1(writes, "blockIO.weightDevice", "blkio.weight_device",
                    "blkio.bfq.weight_device", name + std::to_string(*device.weight));
    }
    if (device.leaf_weight.value_or(0) != 0) {
      add_weight_v1(writes, "blockIO.weightDevice.leafWeight", "blkio.leaf_weight_device", "",
                    name + std::to_string(*device.leaf_weight));
    }
  }
  auto add_rates = [&](const std::vector<oci::DeviceRate>& rates, const std::string& limit,
                       const std::string& file) {
    for (const auto& rate : rates) {
      writes.add("blockIO." + limit, "blkio", "blkio.throttle." + file,
                 device_name(rate.major, rate.minor) + " " + std::to_string(rate.rate));
    }
  };
  add_rates(block_io.throttle_read_bps, "throttleReadBpsDevice", "read_bps_device");
  add_rates(block_io.throttle_write_bps, "throttleWriteBpsDevice", "write_bps_device");
  add_rates(block_io.throttle_read_iops, "throttleReadIOPSDevice", "read_iops_device");
  add_rates(block_io.throttle_write_iops, "throttleWriteIOPSDevice", "write_iops_device");
}

void add_network_v1(Writes& writes, const oci::NetworkResources& network) {
  writes.add_if("network.classID", "net_cls", "net_cls.classid", network.class_id);
  for (const auto& priority : network.priorities) {
    writes.add("network.priorities", "net_prio", "net_prio.ifpriomap",
               priority.name + " " + std::to_string(priority.priority));
  }
}

/// Memory and swap are one limit in the spec, two in v2.
Result<void> add_memory_v2(Writes& writes, const oci::Memory& memory) {
  int64_t limit = memory.limit.value_or(0);
  int64_t swap = memory.swap.value_or(0);
  if (limit != 0) writes.add("memory.limit", "memory", "memory.max", number_or_max(limit));
  if (swap > 0 && limit == 0) {
    return invalid("memory.swap", "it counts memory and swap together, and needs a memory.limit");
  }
  if (swap != 0) {
    // Without a memory limit there is nothing to subtract.
    int64_t alone = swap > 0 && limit > 0 ? swap - limit : swap;
    writes.add("memory.swap", "memory", "memory.swap.max", number_or_max(alone));
    // A kernel without swap has no such file; there both "no swap" and "unlimited" hold anyway.
    if (alone <= 0) writes.last().absent = Absent::ignore;
  } else if (limit == -1) {
    writes.add("memory.limit", "memory", "memory.swap.max", std::string("max"));
    writes.last().absent = Absent::ignore;
  }
  if (memory.reservation.value_or(0) != 0) {
    writes.add("memory.reservation", "memory", "memory.low", number_or_max(*memory.reservation));
  }
  return {};
}

void add_cpu_v2(Writes& writes, const oci::Cpu& cpu) {
  if (cpu.shares.value_or(0) != 0) {
    writes.add("cpu.shares", "cpu", "cpu.weight", weight_of_shares(*cpu.shares));
  }
  int64_t quota = cpu.quota.value_or(0);
  uint64_t period = cpu.period.value_or(0);
  if (quota != 0 || period != 0) {
    std::string value = quota > 0 ? std::to_string(quota) : "max";
    if (period != 0) value += " " + std::to_string(period);
    writes.add(quota != 0 ? "cpu.quota" : "cpu.period", "cpu", "cpu.max", value);
  }
  add_burst(writes, "cpu.max.burst", cpu.burst);
  if (cpu.idle) writes.add("cpu.idle", "cpu", "cpu.idle", *cpu.idle);
}

/// io.weight for blockIO.weight: 10 → 1, 1000 → 10000.
uint64_t io_weight_of(uint64_t weight) {
  return 1 + (weight - 10) * 9999 / 990;
}

/// The scheduler BFQ takes the weight as it is; for io.weight it is converted to 1 to 10000.
void add_weight_v2(Writes& writes, const std::string& limit, const std::string& device,
                   uint32_t weight) {
  writes.add(limit, "io", "io.bfq.weight", device + std::to_string(weight));
  writes.last().instead = {"io.weight", device + std::to_string(io_weight_of(weight))};
}

void add_block_io_v2(Writes& writes, const oci::BlockIo& block_io) {
  if (block_io.weight.value_or(0) != 0) {
    add_weight_v2(writes, "blockIO.weight", "", *block_io.weight);
  }
  for (const auto& device : block_io.weight_device) {
    if (device.weight.value_or(0) == 0) continue;
    add_weight_v2(writes, "blockIO.weightDevice", device_name(device.major, device.minor) + " ",
                  *device.weight);
  }
  auto add_rates = [&](const std::vector<oci::DeviceRate>& rates, const std::string& limit,
                       const std::string& key) {
    for (const auto& rate : rates) {
      // In v1 zero removes the limit.
      std::string value = rate.rate == 0 ? "max" : std::to_string(rate.rate);
      writes.add("blockIO." + limit, "io", "io.max",
                 device_name(rate.major, rate.minor) + " " + key + "=" + value);
    }
  };
  add_rates(block_io.throttle_read_bps, "throttleReadBpsDevice", "rbps");
  add_rates(block_io.throttle_write_bps, "throttleWriteBpsDevice", "wbps");
  add_rates(block_io.throttle_read_iops, "throttleReadIOPSDevice", "riops");
  add_rates(block_io.throttle_write_iops, "throttleWriteIOPSDevice", "wiops");
}

}  // namespace

bool lifts_limit(const CgroupWrite& write) {
  return write.value == "-1" || write.value == "max";
}

uint64_t weight_of_shares(uint64_t shares) {
  if (shares <= 2) return 1;
  if (shares >= 262144) return 10000;
  double power = std::log2(static_cast<double>(shares));
  double exponent = (power * power + 125 * power) / 612.0 - 7.0 / 34.0;
  return static_cast<uint64_t>(std::ceil(std::pow(10, exponent)));
}

Result<void> check_resources(const oci::Resources& resources) {
  if (resources.memory) TRY(check_memory(*resources.memory));
  if (resources.block_io) TRY(check_block_io(*resources.block_io));
  for (size_t i = 0; i < resources.hugepage_limits.size(); ++i) {
    TRY(check_part_of_name(resources.hugepage_limits[i].page_size,
                           at("hugepageLimits", i) + ".pageSize"));
  }
  if (resources.network) {
    const auto& priorities = resources.network->priorities;
    for (size_t i = 0; i < priorities.size(); ++i) {
      TRY(check_word(priorities[i].name, at("network.priorities", i) + ".name"));
    }
  }
  for (const auto& [device, limit] : resources.rdma) TRY(check_word(device, "rdma"));
  for (const auto& [file, value] : resources.unified) TRY(check_part_of_name(file, "unified"));
  return {};
}

std::vector<CgroupWrite> v1_writes(const oci::Resources& resources) {
  Writes writes;
  if (resources.memory) add_memory_v1(writes, *resources.memory);
  if (resources.cpu) {
    add_cpu_v1(writes, *resources.cpu);
    add_cpuset(writes, *resources.cpu);
  }
  if (resources.pids) {
    writes.add("pids.limit", "pids", "pids.max", number_or_max(resources.pids->limit));
  }
  if (resources.block_io) add_block_io_v1(writes, *resources.block_io);
  if (resources.network) add_network_v1(writes, *resources.network);
  add_hugepages(writes, resources, "rsvd.limit_in_bytes", "limit_in_bytes");
  add_rdma(writes, resources);
  return writes.take();
}

Result<std::vector<CgroupWrite>> v2_writes(const oci::Resources& resources) {
  Writes writes;
  if (resources.memory) TRY(add_memory_v2(writes, *resources.memory));
  if (resources.cpu) {
    add_cpu_v2(writes, *resources.cpu);
    add_cpuset(writes, *resources.cpu);
  }
  if (resources.pids) {
    writes.add("pids.limit", "pids", "pids.max", number_or_max(resources.pids->limit));
  }
  if (resources.block_io) add_block_io_v2(writes, *resources.block_io);
  add_hugepages(writes, resources, "rsvd.max", "max");
  add_rdma(writes, resources);
  for (const auto& [file, value] : resources.unified) {
    std::string controller = file.substr(0, file.find('.'));
    writes.add("unified." + file, controller == "cgroup" ? "" : controller, file, value);
  }
  return writes.take();
}

}  // namespace berth::runtime
