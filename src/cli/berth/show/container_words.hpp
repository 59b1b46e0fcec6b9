// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/inspect/container_query.hpp"

/// Docker's phrases about a container. Pure, except that some depend on the current time.
namespace berth::cli {

using Now = std::chrono::system_clock::time_point;

/// "Up 5 minutes (healthy)", "Exited (0) 3 minutes ago", "Restarting (1) 2 seconds ago".
std::string status_words(const engine::ListedContainer& container, Now now);

enum class Text { shortened, whole };

/// "\"sh -c 'sleep 100'\"": the command in double quotes, arguments with blanks in single quotes,
/// at most 20 columns.
std::string command_words(const std::vector<std::string>& command, Text text);

/// "443/tcp, 0.0.0.0:8080->80/tcp". Consecutive ports with the same number on both sides are one
/// range: "8000-8002/tcp".
std::string port_words(std::vector<engine::PortSummary> ports);

/// Names of volumes and sources of binds: "data,/srv/pictures".
std::string mount_words(const std::vector<engine::MountSummary>& mounts, Text text);

/// "0B (virtual 1.98MB)"
std::string size_words(const engine::ContainerSize& size);

/// "2026-11-21 23:38:29 +0100 CET": Go's format, in the local time zone.
std::string zoned_time(int64_t seconds);

/// "2026-11-21T23:38:29.000000007+01:00", for a time in nanoseconds since 1970, in the local time
/// zone.
std::string zoned_moment(int64_t nanoseconds);

}  // namespace berth::cli
