// SPDX-License-Identifier: Apache-2.0
#include "spank/message.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::spank {
namespace {

/// A buffer for descriptors, in the layout of the kernel.
union Control {
  cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
};

}  // namespace

bool send(int socket, const void* bytes, size_t size, const int* fds, int count) {
  iovec part{const_cast<void*>(bytes), size};  // the kernel only reads
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    size_t length = sizeof(int) * static_cast<size_t>(count);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(head), fds, length);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

Received receive(int socket, void* bytes, size_t size, int* fds, int room, int flags) {
  iovec part{bytes, size};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  Received received;
  do {
    received.bytes = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (received.bytes < 0 && errno == EINTR);
  cmsghdr* head = received.bytes < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
    return received;
  }
  auto count = static_cast<int>((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  for (int i = 0; i < count; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(head) + sizeof(int) * static_cast<size_t>(i), sizeof fd);
    if (received.fds < room) {
      fds[received.fds++] = fd;
    } else {
      ::close(fd);
    }
  }
  return received;
}

}  // namespace berth::spank
