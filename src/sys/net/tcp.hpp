// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Connects to a numeric IPv4 or IPv6 address; the socket is non-blocking.
/// Errors: usage (no such address), interrupted (`patience` is over), io.  connect(2)
Result<Fd> connect_tcp(const std::string& address, uint16_t port,
                       std::chrono::milliseconds patience);

/// Listens at a free port of one of this machine's addresses.
/// Errors: usage (no such address), io.  bind(2), listen(2)
Result<Fd> listen_tcp(const std::string& address);

/// The address of such a socket: "10.1.2.3:4567", "[fd00::1]:4567".  getsockname(2)
Result<std::string> listening_address(const Fd& listener);

/// This machine's address on the connection: "10.1.2.3", "fd00::1".  getsockname(2)
Result<std::string> local_address(const Fd& socket);

/// Reads a non-blocking stream up to its first newline. Drops the newline and bytes that arrive
/// together with it.
/// Errors: interrupted (`patience` is over), corrupt (more than `most` bytes), io (the stream ended
/// before a newline).
Result<std::string> read_line(const Fd& stream, size_t most, std::chrono::milliseconds patience,
                              const std::string& name);

}  // namespace berth::sys
