// SPDX-License-Identifier: Apache-2.0
#include "sys/net/socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/text.hpp"
#include "sys/fd/poll.hpp"

namespace berth::sys {
namespace {

constexpr int kBacklog = 1;

Result<Fd> make_socket(SocketType type) {
  int kind = type == SocketType::stream ? SOCK_STREAM : SOCK_SEQPACKET;
  Fd socket(::socket(AF_UNIX, kind | SOCK_CLOEXEC, 0));
  if (!socket) return errno_now().error("make a socket");
  return socket;
}

// The address has at most 107 bytes; for a longer path the caller uses a path through a handle of
// the directory.
Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return make_error(Kind::usage, "name socket " + quote(path) + ": longer than 107 bytes");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<std::pair<Fd, Fd>> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno_now().error("make a socket pair");
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

Result<void> send_message(const Fd& socket, const void* bytes, size_t size, const Fd& passed) {
  iovec part{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = passed.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno_now().error("send a message");
  return {};
}

Result<void> send_all(const Fd& socket, std::string_view bytes,
                      std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  while (!bytes.empty()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    std::vector<pollfd> entries = {{socket.get(), POLLOUT, 0}};
    int ready = TRY(poll(entries, std::max(left, std::chrono::milliseconds(0))));
    if (ready == 0) return sys_error(ETIMEDOUT, "send an answer");
    ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return errno_now().error("send an answer");
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<Received> receive_message(const Fd& socket, void* bytes, size_t size) {
  iovec part{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  // If the peer died with unread messages, the first call gives ECONNRESET, once. The next call
  // gives the last message of the peer, or the end.
  do {
    count = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  if (count < 0) return errno_now().error("receive a message");
  Received received{static_cast<size_t>(count), Fd()};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.passed = Fd(fd);
  }
  return received;
}

bool peer_is_gone(const Fd& socket) {
  // Polls instead of reading, because data of the peer may still be unread.
  pollfd entry{socket.get(), 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

Result<Fd> listen_unix(const std::string& path, SocketType type) {
  Fd socket = TRY(make_socket(type));
  sockaddr_un address = TRY(unix_address(path));
  // The file of the socket gets the mode of the descriptor, less the umask.
  if (::fchmod(socket.get(), 0600) != 0) return errno_now().error("create socket " + quote(path));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return errno_now().error("create socket " + quote(path));
  }
  if (::listen(socket.get(), kBacklog) != 0) return errno_now().error("listen on " + quote(path));
  return socket;
}

Result<Fd> accept_connection(const Fd& listener) {
  int fd;
  do {
    fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno_now().error("accept a connection");
  return Fd(fd);
}

Result<Fd> connect_unix(const std::string& path, SocketType type) {
  Fd socket = TRY(make_socket(type));
  sockaddr_un address = TRY(unix_address(path));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return errno_now().error("connect to " + quote(path));
  }
  return socket;
}

}  // namespace berth::sys
