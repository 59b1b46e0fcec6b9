// SPDX-License-Identifier: Apache-2.0
#include "sys/net/packet.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace berth::sys {

Result<bool> offer_packet(const Fd& socket, std::string_view head, std::string_view body,
                          std::span<const int> passed) {
  BERTH_ASSERT(passed.size() <= kMaxPassed);
  std::array<iovec, 2> parts = {{{const_cast<char*>(head.data()), head.size()},
                                 {const_cast<char*>(body.data()), body.size()}}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassed)] = {};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!passed.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(passed.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(passed.size_bytes());
    std::memcpy(CMSG_DATA(header), passed.data(), passed.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return true;
  if (errno == EAGAIN || errno == ENOBUFS) return false;
  return errno_now().error("send a packet");
}

Result<std::optional<Packet>> take_packet(const Fd& socket, std::span<char> buffer, Take take) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassed)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  int flags = MSG_CMSG_CLOEXEC | MSG_DONTWAIT | (take == Take::peek ? MSG_PEEK : 0);
  ssize_t count;
  // If the peer died with unread packets, the first call gives ECONNRESET. The last packets of the
  // peer come with the next calls.
  do {
    count = ::recvmsg(socket.get(), &message, flags);
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  if (count < 0 && errno == EAGAIN) return std::optional<Packet>();
  if (count < 0) return errno_now().error("receive a packet");
  Packet packet{static_cast<size_t>(count), {}};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t bytes = header->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
      packet.passed.emplace_back(fd);
    }
  }
  return std::optional<Packet>(std::move(packet));
}

}  // namespace berth::sys
