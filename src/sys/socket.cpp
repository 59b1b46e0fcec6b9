// SPDX-License-Identifier: Apache-2.0
#include "sys/socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "sys/file.hpp"

namespace berth::sys {

Result<std::pair<Fd, Fd>> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return sys_error(errno, "make a socket pair");
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
  if (sent < 0) return sys_error(errno, "send a message");
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
  do {
    count = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  // A reset is how a peer that died with unread messages looks: it is gone all the same.
  if (count < 0 && errno == ECONNRESET) count = 0;
  if (count < 0) return sys_error(errno, "receive a message");
  Received received{static_cast<size_t>(count), Fd()};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.passed = Fd(fd);
  }
  return received;
}

Result<Fd> connect_unix(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return sys_error(errno, "make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The address holds 107 bytes; a longer path is named through a handle of the file.
  std::string name = path;
  Fd handle;
  if (name.size() >= sizeof address.sun_path) {
    handle = TRY(open_at(cwd(), path, O_PATH));
    name = fd_path(handle);
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return sys_error(errno, "connect to " + quoted(path));
  }
  return socket;
}

}  // namespace berth::sys
