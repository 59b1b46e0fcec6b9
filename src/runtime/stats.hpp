// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing; the kernel's texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.hpp"
#include "runtime/cgroup.hpp"

namespace berth::runtime {

/// What the kernel has counted for a container, with the members that runc's `events` prints: cpu,
/// cpuset, memory, pids, blkio, hugetlb, intel_rdt, network_interfaces. A member that nobody
/// counts, because the container is not in that hierarchy, is missing; processor time is always
/// known from cgroup v2 where there is one. Source: opencontainers/runc types/events.go;
/// cgroup-v1/*.rst, cgroup-v2.rst.
json::Object stats_of(const CgroupSet& cgroups);

/// How many of its processes the kernel has killed for want of memory; nothing where its memory is
/// not counted, as it is for one that has no limit on cgroup v1.
/// Source: cgroup-v2.rst "memory.events"; cgroup-v1/memory.rst "OOM Control".
std::optional<uint64_t> oom_kills(const CgroupSet& cgroups);

// The readers of the kernel's tables; pure. Lines that make no sense are skipped.

/// "key value" lines: memory.stat, cpu.stat.
std::vector<std::pair<std::string, uint64_t>> read_counters(std::string_view text);

/// "8:0 Read 4096" and "8:0 12" lines of blkio files, as entries {major, minor, op, value}.
json::Array read_blkio(std::string_view text);

/// "8:0 rbytes=1 wbytes=2 rios=3 …" lines of io.stat: the entries of `read` and `write`, two of
/// its keys, as operations Read and Write.
json::Array read_io_stat(std::string_view text, std::string_view read, std::string_view write);

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" lines of the *.pressure files.
json::Object read_pressure(std::string_view text);

}  // namespace berth::runtime
