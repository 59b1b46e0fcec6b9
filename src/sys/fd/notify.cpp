// SPDX-License-Identifier: Apache-2.0
#include "sys/fd/notify.hpp"

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<Fd> make_event_counter() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return errno_now().error("make an event counter");
  return Fd(fd);
}

namespace {

Result<Fd> watch_events(const std::string& path, uint32_t events) {
  Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch) return errno_now().error("watch files");
  if (::inotify_add_watch(watch.get(), path.c_str(), events) < 0) {
    return errno_now().error("watch " + quote(path));
  }
  return watch;
}

}  // namespace

Result<Fd> watch_file(const std::string& path) {
  return watch_events(path, IN_MODIFY);
}

Result<Fd> watch_directory(const std::string& path) {
  return watch_events(path, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
}

void forget_events(const Fd& watch) {
  char events[4096];
  while (::read(watch.get(), events, sizeof events) > 0) {
  }
}

}  // namespace berth::sys
