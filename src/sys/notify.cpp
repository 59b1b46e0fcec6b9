// SPDX-License-Identifier: Apache-2.0
#include "sys/notify.hpp"

#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <cerrno>

#include "base/text.hpp"

namespace berth::sys {

Result<Fd> make_event_counter() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return errno_now().error("make an event counter");
  return Fd(fd);
}

Result<Fd> watch_file(const std::string& path) {
  Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch) return errno_now().error("watch files");
  if (::inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY) < 0) {
    return errno_now().error("watch " + quoted(path));
  }
  return watch;
}

}  // namespace berth::sys
