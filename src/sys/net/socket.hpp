// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Two connected ends that preserve message boundaries; both close on exec. socketpair(2)
/// SOCK_SEQPACKET
Result<std::pair<Fd, Fd>> socket_pair();

/// Sends one message of `size` bytes, with the descriptor `passed` unless it is empty.
/// Errors: io (EPIPE: the other end is gone; never SIGPIPE).  sendmsg(2) SCM_RIGHTS
Result<void> send_message(const Fd& socket, const void* bytes, size_t size, const Fd& passed);

struct Received {
  size_t size = 0;  ///< 0: the other end is closed
  Fd passed;        ///< empty unless a descriptor was sent
};
/// recvmsg(2)
Result<Received> receive_message(const Fd& socket, void* bytes, size_t size);

/// Sends all of `bytes` on a stream, within `patience`.
/// Errors: io (EPIPE: never SIGPIPE; ETIMEDOUT: the other end does not read).  send(2)
Result<void> send_all(const Fd& socket, std::string_view bytes, std::chrono::milliseconds patience);

/// Whether the other end is closed, even if data from it is still unread.
bool peer_is_gone(const Fd& socket);

enum class SocketType { stream, messages };
/// Makes a UNIX socket at `path` (at most 107 bytes) that only this user can use, and listens.
/// Errors: io (EADDRINUSE: the path exists), usage (a longer path).  bind(2), listen(2)
Result<Fd> listen_unix(const std::string& path, SocketType type = SocketType::stream);
/// Waits for the next connection. accept4(2)
Result<Fd> accept_connection(const Fd& listener);
/// Errors: not_found, denied, io (ECONNREFUSED: no process listens).  connect(2)
Result<Fd> connect_unix(const std::string& path, SocketType type);

}  // namespace berth::sys
