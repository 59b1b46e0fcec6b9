// SPDX-License-Identifier: Apache-2.0
#include "sys/listen.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace berth::sys {

Result<Fd> listen_unix(const std::string& path) {
  std::string what = "listen at " + quoted(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return sys_error(ENAMETOOLONG, what);
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_now().error(what);
  mode_t before = ::umask(0177);
  int bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  int saved = errno;
  ::umask(before);
  if (bound != 0) return sys_error(saved, what);
  if (::listen(socket.get(), 1) != 0) return errno_now().error(what);
  return socket;
}

Result<Fd> accept_unix(const Fd& socket) {
  int fd;
  do {
    fd = ::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno_now().error("accept a connection");
  return Fd(fd);
}

std::string shared_fd_path(const Fd& fd) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd.get());
}

}  // namespace berth::sys
