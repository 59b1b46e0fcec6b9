// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// "/dev/sda:500": a block device of the host with a weight or a rate.
struct DeviceValue {
  std::string path;    ///< absolute, on the host
  uint64_t value = 0;  ///< a weight, bytes a second or operations a second
  bool operator==(const DeviceValue&) const = default;
};
template <class V>
void fields(V& v, DeviceValue& d) {
  v.required("path", d.path);
  v.required("value", d.value);
}

/// The limits of a container. As with docker, 0 means no limit. None means that the flag was not
/// given.
struct Limits {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> memory_reservation_bytes;
  std::optional<int64_t> memory_swap_bytes;  ///< memory and swap together; -1: no limit
  std::optional<int64_t> memory_swappiness;  ///< 0 to 100; -1: the kernel's default
  bool oom_kill_disable = false;

  std::optional<uint64_t> cpu_millis;  ///< thousandths of a CPU: 1500 for --cpus 1.5
  std::optional<uint64_t> cpu_shares;
  std::optional<uint64_t> cpu_period;  ///< microseconds, also the three below
  std::optional<int64_t> cpu_quota;    ///< per period
  std::optional<uint64_t> cpu_rt_period;
  std::optional<int64_t> cpu_rt_runtime;  ///< per period
  std::string cpuset_cpus;                ///< "0-3,7"
  std::string cpuset_mems;

  std::optional<int64_t> pids;  ///< -1: no limit

  std::optional<uint64_t> blkio_weight;  ///< 10 to 1000
  std::vector<DeviceValue> blkio_weight_device;
  std::vector<DeviceValue> device_read_bps;
  std::vector<DeviceValue> device_write_bps;
  std::vector<DeviceValue> device_read_iops;
  std::vector<DeviceValue> device_write_iops;
  bool operator==(const Limits&) const = default;
};
template <class V>
void fields(V& v, Limits& l) {
  v.optional("memory_bytes", l.memory_bytes);
  v.optional("memory_reservation_bytes", l.memory_reservation_bytes);
  v.optional("memory_swap_bytes", l.memory_swap_bytes);
  v.optional("memory_swappiness", l.memory_swappiness);
  v.optional("oom_kill_disable", l.oom_kill_disable);
  v.optional("cpu_millis", l.cpu_millis);
  v.optional("cpu_shares", l.cpu_shares);
  v.optional("cpu_period", l.cpu_period);
  v.optional("cpu_quota", l.cpu_quota);
  v.optional("cpu_rt_period", l.cpu_rt_period);
  v.optional("cpu_rt_runtime", l.cpu_rt_runtime);
  v.optional("cpuset_cpus", l.cpuset_cpus);
  v.optional("cpuset_mems", l.cpuset_mems);
  v.optional("pids", l.pids);
  v.optional("blkio_weight", l.blkio_weight);
  v.optional("blkio_weight_device", l.blkio_weight_device);
  v.optional("device_read_bps", l.device_read_bps);
  v.optional("device_write_bps", l.device_write_bps);
  v.optional("device_read_iops", l.device_read_iops);
  v.optional("device_write_iops", l.device_write_iops);
  v.strict();
}

/// "/dev/sda:500". Errors: usage, with docker's message.
Result<DeviceValue> parse_device_weight(std::string_view text);  ///< 0, or 10 to 1000
Result<DeviceValue> parse_device_bytes(std::string_view text);   ///< "/dev/sda:1mb"
Result<DeviceValue> parse_device_rate(std::string_view text);

/// Checks that the machine has the --cpus and the cpusets that the user typed. The site's rules are
/// not checked, because one rule applies to machines of all sizes. Errors: usage, with docker's
/// message.
Result<void> check_processors(const Limits& limits);

/// Checks that the limits do not contradict each other. Errors: usage, with docker's message.
Result<void> check_limits(const Limits& limits);

/// The limits of block devices, with device numbers; nothing if there are none. Errors: not_found,
/// usage (not a block device).
Result<std::optional<oci::BlockIo>> block_limits(const Limits& limits);

/// The swap of a container that has a memory limit but no swap limit: unlimited, or as much as the
/// memory, which is docker's default. For an ordinary user in a batch job it is unlimited unless
/// the site limits the memory.
enum class Swap { as_asked, as_much };

/// Adds all limits but those of block devices to `resources`. Pure.
void add_limits(const Limits& limits, Swap swap, oci::Resources& resources);

}  // namespace berth::engine
