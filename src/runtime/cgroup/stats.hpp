// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none; the files come from the
// kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.hpp"
#include "runtime/cgroup/cgroup.hpp"

namespace berth::runtime {

/// What the kernel has counted for a container, with the members that runc's `events` prints: cpu,
/// cpuset, memory, pids, blkio, hugetlb, intel_rdt, network_interfaces. A member is missing if the
/// container is not in the hierarchy that counts it; cgroup v2, where mounted, always counts
/// processor time. Source: opencontainers/runc types/events.go; cgroup-v1/*.rst, cgroup-v2.rst.
json::Object stats_of(const CgroupSet& cgroups);

/// How many processes of a container the OOM killer has killed. Nothing if no cgroup counts the
/// container's memory, as on cgroup v1 without a memory limit.
/// Source: cgroup-v2.rst "memory.events"; cgroup-v1/memory.rst "OOM Control".
std::optional<uint64_t> oom_kills(const CgroupSet& cgroups);

// Parsers for the kernel's tables; pure. They skip malformed lines.

/// "key value" lines: memory.stat, cpu.stat.
std::vector<std::pair<std::string, uint64_t>> read_counters(std::string_view text);

/// "8:0 Read 4096" and "8:0 12" lines of blkio files, as entries {major, minor, op, value}.
json::Array read_blkio(std::string_view text);

/// "8:0 rbytes=1 wbytes=2 rios=3 …" lines of io.stat: the values of the two keys `read` and
/// `write`, as entries with the operations Read and Write.
json::Array read_io_stat(std::string_view text, std::string_view read, std::string_view write);

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" lines of the *.pressure files.
json::Object read_pressure(std::string_view text);

}  // namespace berth::runtime
