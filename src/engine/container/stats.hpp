// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"

/// The resource usage of running containers, for `stats`.
namespace berth::engine {

/// The counters at one moment. A member is none if nothing counts it: containers of an ordinary
/// user may have no control group, and the kernel shows the user only some files of their
/// processes.
struct Usage {
  int64_t at_ns = 0;               ///< of a monotonic clock
  std::optional<uint64_t> cpu_ns;  ///< of all its processes so far
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> memory_limit_bytes;  ///< at most the machine's memory
  std::optional<uint64_t> received_bytes;      ///< of all devices except lo
  std::optional<uint64_t> sent_bytes;
  std::optional<uint64_t> read_bytes;  ///< from disks
  std::optional<uint64_t> written_bytes;
  std::optional<uint64_t> processes;
  bool from_processes = false;  ///< memory was summed over /proc, since no control group counts it
};

/// Empty for a container that does not run. Starts berth-runtime once, or twice if no control group
/// counts the usage.
Usage measure_container(const Context& context, const ContainerSummary& container);

/// Percent of one processor between two measurements.
std::optional<double> cpu_percent(const Usage& before, const Usage& after);

/// The bytes of memory of this machine; nothing if /proc/meminfo cannot be read.
std::optional<uint64_t> machine_memory();

/// The processes of a running container as the host's ps(1) lists them, with the host's ids.
/// `ps_arguments`: arguments of ps, as with docker; empty means "-ef".
/// Errors: not_found, usage (not running), those of ps.
Result<std::string> container_processes(const Context& context, std::string_view reference,
                                        const std::vector<std::string>& ps_arguments);

}  // namespace berth::engine
