// SPDX-License-Identifier: Apache-2.0
#include "engine/request/limits.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/processors.hpp"

namespace berth::engine {
namespace {

constexpr uint64_t kLeastMemory = uint64_t{6} << 20;  // docker's minimum
constexpr uint64_t kPeriod = 100'000;                 // microseconds, the kernel's default
constexpr uint64_t kLeastTime = 1'000;                // microseconds, as is kMostTime
constexpr uint64_t kMostTime = 1'000'000;
constexpr uint64_t kMostShares = 262'144;  // the maximum of the kernel's cpu controller
constexpr size_t kMaxList = 4096;          // bytes of a kernel file with a list of numbers

Error wrong_limit(std::string what) {
  return make_error(Kind::usage, std::move(what));
}

/// Splits "/dev/sda:500"; the path may contain colons.
Result<DeviceValue> split_device(std::string_view text,
                                 std::optional<uint64_t> (*read)(std::string_view),
                                 const char* what) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong_limit("bad format: expected /dev/DEVICE:VALUE");
  std::string_view path = text.substr(0, colon);
  if (!path.starts_with("/dev/")) return wrong_limit("bad format for device path: expected /dev/…");
  auto value = read(text.substr(colon + 1));
  if (!value) return wrong_limit(what);
  return DeviceValue{std::string(path), *value};
}

Result<void> check_memory_range(const Limits& limits) {
  uint64_t memory = limits.memory_bytes.value_or(0);
  uint64_t reservation = limits.memory_reservation_bytes.value_or(0);
  int64_t swap = limits.memory_swap_bytes.value_or(0);
  int64_t swappiness = limits.memory_swappiness.value_or(-1);
  if (memory > 0 && memory < kLeastMemory)
    return wrong_limit("Minimum memory limit allowed is 6MB");
  if (reservation > 0 && reservation < kLeastMemory) {
    return wrong_limit("Minimum memory reservation allowed is 6MB");
  }
  if (memory > 0 && reservation > memory) {
    return wrong_limit(
        "Minimum memory limit can not be less than memory reservation limit, see usage");
  }
  if (swap > 0 && memory == 0) {
    return wrong_limit(
        "You should always set the Memory limit when using Memoryswap limit, see usage");
  }
  if (swap > 0 && static_cast<uint64_t>(swap) < memory) {
    return wrong_limit("Minimum memoryswap limit should be larger than memory limit, see usage");
  }
  if (swappiness < -1 || swappiness > 100) {
    return wrong_limit("Invalid value: " + std::to_string(swappiness) +
                       ", valid memory swappiness range is 0-100");
  }
  return {};
}

Result<void> check_cpu(const Limits& limits) {
  if (limits.cpu_millis.value_or(0) > 0 && limits.cpu_period.value_or(0) > 0) {
    return wrong_limit("Conflicting options: Nano CPUs and CPU Period cannot both be set.");
  }
  if (limits.cpu_millis.value_or(0) > 0 && limits.cpu_quota.value_or(0) > 0) {
    return wrong_limit("Conflicting options: Nano CPUs and CPU Quota cannot both be set.");
  }
  uint64_t period = limits.cpu_period.value_or(0);
  if (period != 0 && (period < kLeastTime || period > kMostTime)) {
    return wrong_limit(
        "CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)");
  }
  int64_t quota = limits.cpu_quota.value_or(0);
  if (quota > 0 && quota < static_cast<int64_t>(kLeastTime)) {
    return wrong_limit("CPU cfs quota can not be less than 1ms (i.e. 1000)");
  }
  uint64_t shares = limits.cpu_shares.value_or(0);
  if (shares == 1) return wrong_limit("The minimum allowed cpu-shares is 2");
  if (shares > kMostShares) {
    return wrong_limit("The maximum allowed cpu-shares is " + std::to_string(kMostShares));
  }
  int64_t realtime = limits.cpu_rt_runtime.value_or(0);
  if (realtime > 0 && limits.cpu_rt_period.value_or(0) > 0 &&
      static_cast<uint64_t>(realtime) > *limits.cpu_rt_period) {
    return wrong_limit("cpu real-time runtime cannot be higher than cpu real-time period");
  }
  return {};
}

Result<void> check_list(const std::string& list, const char* name) {
  if (list.find_first_not_of("0123456789,-") == std::string::npos) return {};
  return wrong_limit("Invalid value " + escape_controls(list) + " for " + name);
}

/// Whether the machine has every entry of `list`; `online` is the file of the kernel that lists the
/// available entries.
Result<void> check_available(const std::string& list, const char* name, const char* what,
                             const char* online) {
  if (list.empty()) return {};
  auto asked = parse_numbers(list);
  if (!asked) return wrong_limit("Invalid value " + escape_controls(list) + " for " + name);
  auto text = sys::read_file(sys::cwd(), online, kMaxList);
  auto there = text.ok() ? parse_numbers(*text) : std::nullopt;
  if (!there || std::includes(there->begin(), there->end(), asked->begin(), asked->end()))
    return {};
  return wrong_limit(std::string("Requested ") + what + " are not available - requested " + list +
                     ", available: " + to_text(*there));
}

struct DeviceNumber {
  int64_t major;
  int64_t minor;
};

Result<DeviceNumber> number_of(const std::string& path) {
  auto node = TRY(sys::open_at(sys::cwd(), path, O_PATH));
  struct stat info = TRY(sys::stat_fd(node, path));
  if (!S_ISBLK(info.st_mode)) {
    return make_error(Kind::usage, quote(path) + " is not a block device");
  }
  return DeviceNumber{static_cast<int64_t>(major(info.st_rdev)),
                      static_cast<int64_t>(minor(info.st_rdev))};
}

Result<std::vector<oci::DeviceRate>> rates(const std::vector<DeviceValue>& wishes) {
  std::vector<oci::DeviceRate> out;
  for (const DeviceValue& wish : wishes) {
    DeviceNumber number = TRY(number_of(wish.path));
    out.push_back({number.major, number.minor, wish.value});
  }
  return out;
}

void add_memory(const Limits& limits, Swap swap, oci::Resources& resources) {
  oci::Memory memory;
  uint64_t limit = limits.memory_bytes.value_or(0);
  bool any = false;
  if (limit > 0) {
    any = true;
    memory.limit = static_cast<int64_t>(limit);
    if (swap == Swap::as_much) memory.swap = static_cast<int64_t>(limit * 2);
  }
  if (limits.memory_swap_bytes.value_or(0) != 0) {
    any = true;
    memory.swap = *limits.memory_swap_bytes;
  }
  if (limits.memory_reservation_bytes.value_or(0) > 0) {
    any = true;
    memory.reservation = static_cast<int64_t>(*limits.memory_reservation_bytes);
  }
  if (limits.memory_swappiness.value_or(-1) >= 0) {
    any = true;
    memory.swappiness = static_cast<uint64_t>(*limits.memory_swappiness);
  }
  if (limits.oom_kill_disable) {
    any = true;
    memory.disable_oom_killer = true;
  }
  if (any) resources.memory = std::move(memory);
}

void add_cpu(const Limits& limits, oci::Resources& resources) {
  oci::Cpu cpu;
  bool any = false;
  auto take = [&any](auto& target, const auto& wish) {
    if (wish.value_or(0) == 0) return;
    target = *wish;
    any = true;
  };
  if (limits.cpu_millis.value_or(0) > 0) {
    any = true;
    cpu.period = kPeriod;
    cpu.quota = static_cast<int64_t>(*limits.cpu_millis * kPeriod / 1000);
  }
  take(cpu.shares, limits.cpu_shares);
  take(cpu.period, limits.cpu_period);
  take(cpu.quota, limits.cpu_quota);
  take(cpu.realtime_period, limits.cpu_rt_period);
  take(cpu.realtime_runtime, limits.cpu_rt_runtime);
  cpu.cpus = limits.cpuset_cpus;
  cpu.mems = limits.cpuset_mems;
  if (any || !cpu.cpus.empty() || !cpu.mems.empty()) resources.cpu = std::move(cpu);
}

}  // namespace

Result<DeviceValue> parse_device_weight(std::string_view text) {
  auto weight =
      TRY(split_device(text, parse_u64, "invalid weight for device: expected 10 to 1000"));
  if (weight.value != 0 && (weight.value < 10 || weight.value > 1000)) {
    return wrong_limit("invalid weight for device: expected 10 to 1000");
  }
  return weight;
}

Result<DeviceValue> parse_device_bytes(std::string_view text) {
  return split_device(text, parse_bytes,
                      "invalid rate for device: expected a size such as 1mb or 512k");
}

Result<DeviceValue> parse_device_rate(std::string_view text) {
  return split_device(text, parse_u64, "invalid rate for device: expected a whole number");
}

Result<void> check_processors(const Limits& limits) {
  TRY(check_available(limits.cpuset_cpus, "cpuset cpus", "CPUs", "/sys/devices/system/cpu/online"));
  TRY(check_available(limits.cpuset_mems, "cpuset mems", "memory nodes",
                      "/sys/devices/system/node/online"));
  size_t processors = sys::online_processors();
  if (static_cast<uint64_t>(limits.cpu_millis.value_or(0)) <= processors * 1000) return {};
  return wrong_limit("Range of CPUs is from 0.01 to " + std::to_string(processors) +
                     ".00, as there are only " + std::to_string(processors) + " CPUs available");
}

Result<void> check_limits(const Limits& limits) {
  TRY(check_memory_range(limits));
  TRY(check_cpu(limits));
  TRY(check_list(limits.cpuset_cpus, "cpuset cpus"));
  TRY(check_list(limits.cpuset_mems, "cpuset mems"));
  uint64_t weight = limits.blkio_weight.value_or(0);
  if (weight != 0 && (weight < 10 || weight > 1000)) {
    return wrong_limit("Range of blkio weight is from 10 to 1000");
  }
  return {};
}

Result<std::optional<oci::BlockIo>> block_limits(const Limits& limits) {
  oci::BlockIo block;
  if (limits.blkio_weight.value_or(0) > 0) {
    block.weight = static_cast<uint32_t>(*limits.blkio_weight);
  }
  for (const DeviceValue& wish : limits.blkio_weight_device) {
    DeviceNumber number = TRY(number_of(wish.path));
    block.weight_device.push_back(
        {number.major, number.minor, static_cast<uint32_t>(wish.value), std::nullopt});
  }
  block.throttle_read_bps = TRY(rates(limits.device_read_bps));
  block.throttle_write_bps = TRY(rates(limits.device_write_bps));
  block.throttle_read_iops = TRY(rates(limits.device_read_iops));
  block.throttle_write_iops = TRY(rates(limits.device_write_iops));
  bool any = block.weight || !block.weight_device.empty() || !block.throttle_read_bps.empty() ||
             !block.throttle_write_bps.empty() || !block.throttle_read_iops.empty() ||
             !block.throttle_write_iops.empty();
  if (!any) return std::optional<oci::BlockIo>();
  return std::optional<oci::BlockIo>(std::move(block));
}

void add_limits(const Limits& limits, Swap swap, oci::Resources& resources) {
  add_memory(limits, swap, resources);
  add_cpu(limits, resources);
  if (limits.pids.value_or(0) != 0) resources.pids = oci::Pids{*limits.pids};
}

}  // namespace berth::engine
