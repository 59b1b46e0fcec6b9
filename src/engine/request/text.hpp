// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "engine/request/request.hpp"

/// Parsers for the values of flags. All are pure. All errors are usage, and describe only the
/// value; they are docker's messages where scripts depend on them.
namespace berth::engine {

/// "nofile=1024:2048", "nproc=64", "core=-1".
Result<Ulimit> parse_ulimit(std::string_view text);

/// "net.core.somaxconn=512"; only settings that belong to a namespace.
Result<std::pair<std::string, std::string>> parse_sysctl(std::string_view text);

/// "key=value", or "key" for an empty value.
Result<std::pair<std::string, std::string>> parse_label(std::string_view text);

/// As parse_label(), but rejects Berth's own annotations.
Result<std::pair<std::string, std::string>> parse_annotation(std::string_view text);

/// "name:address" (the address may have colons), "name:host-gateway"; checked and returned.
Result<std::string> parse_add_host(std::string_view text);

/// "none", "host", "bridge", "pasta", "slirp4netns", and docker's and podman's names for a bridge.
Result<Network> parse_network(std::string_view text);

/// The address of a name server.
Result<std::string> parse_dns(std::string_view text);

/// A domain for resolv.conf and hosts: letters, digits, '-', '_' and '.' only, so that it contains
/// no blank.
Result<std::string> parse_domain(std::string_view text);
/// An option for resolv.conf, on one line: "ndots:2".
Result<std::string> parse_dns_option(std::string_view text);

/// "80", "80/udp", "3000-3010" → the same with a protocol; the default is "/tcp".
Result<std::string> parse_expose(std::string_view text);

/// "no", "on-failure", "on-failure:3", "always", "unless-stopped".
Result<RestartPolicy> parse_restart(std::string_view text);

/// "1h2m3.5s", "500ms", "10us", "0"; a number needs its unit.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// Parses "max-size=10m", "max-file=3" into `log`.
Result<void> parse_log_option(std::string_view text, LogSettings& log);
Result<LogDriver> parse_log_driver(std::string_view text);

/// "/dev/fuse", "/dev/fuse:/dev/fuse2", "/dev/fuse:rw", "/dev/fuse:/dev/fuse:r".
Result<HostDevice> parse_host_device(std::string_view text);

/// "c 195:* rwm"; checked and returned.
Result<std::string> parse_device_rule(std::string_view text);

/// The values of --pid, --ipc, …; the table in text.cpp lists what each flag allows.
enum class NamespaceFlag { pid, ipc, uts, userns, cgroupns };
Result<NamespaceMode> parse_namespace(NamespaceFlag flag, std::string_view text);

/// "stdin", "STDOUT", "stderr"; returned in lower case.
Result<std::string> parse_stream(std::string_view text);

/// "1.5" → 1500, "0" → 0: thousandths of a CPU, 0 or at least 10.
Result<uint64_t> parse_cpus(std::string_view text);

/// "9", "KILL", "SIGKILL", "sigkill", "RTMIN+3".
Result<int> parse_signal(std::string_view text);

}  // namespace berth::engine
