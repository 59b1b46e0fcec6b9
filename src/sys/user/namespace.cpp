// SPDX-License-Identifier: Apache-2.0
#include "sys/user/namespace.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace berth::sys {

Result<Cloned> clone3(uint64_t flags, int cgroup) {
  int pidfd = -1;
  struct clone_args arguments {};
  arguments.flags = flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  arguments.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD;  // CLONE_PARENT: as our own
  if (cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint64_t>(cgroup);
  }
  long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0 && errno == ENOSYS && cgroup < 0) {
    // COMPAT(5.3). Also needed under seccomp profiles that refuse clone3 because they cannot
    // inspect its arguments.
    pid = ::syscall(SYS_clone, arguments.flags | arguments.exit_signal, nullptr, &pidfd, nullptr,
                    nullptr);
  }
  if (pid < 0) return errno_now().error("make a process in new namespaces");
  return Cloned{static_cast<pid_t>(pid), pid == 0 ? Fd() : Fd(pidfd)};
}

Result<void> setns(const Fd& space, int type, const std::string& name) {
  if (::setns(space.get(), type) != 0) return errno_now().error("join namespace " + quote(name));
  return {};
}

Result<void> unshare(int flags, const std::string& what) {
  if (::unshare(flags) != 0) return errno_now().error("make a new " + what);
  return {};
}

Result<void> pivot_root(const Fd& root) {
  if (::fchdir(root.get()) != 0) return errno_now().error("enter the root file system");
  if (::syscall(SYS_pivot_root, ".", ".") != 0) {
    int saved = errno;
    if (saved == EINVAL) return make_error(Kind::unsupported, "change the root file system");
    return sys_error(saved, "change the root file system");
  }
  // The old root is now mounted on top of the new one at ".". Detaching it removes all access to
  // the host.
  if (::umount2(".", MNT_DETACH) != 0) return errno_now().error("let go of the old root");
  if (::chdir("/") != 0) return errno_now().error("enter '/'");
  return {};
}

Result<void> move_root(const Fd& root) {
  if (::fchdir(root.get()) != 0) return errno_now().error("enter the root file system");
  if (::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0) {
    return errno_now().error("move the root file system to '/'");
  }
  if (::chroot(".") != 0) return errno_now().error("enter the root file system");
  if (::chdir("/") != 0) return errno_now().error("enter '/'");
  return {};
}

Result<void> change_root(const Fd& root, const std::string& name) {
  if (::fchdir(root.get()) != 0) return errno_now().error("enter " + quote(name));
  if (::chroot(".") != 0) return errno_now().error("make " + quote(name) + " the root");
  return {};
}

Result<void> set_hostname(const std::string& name) {
  if (::sethostname(name.c_str(), name.size()) != 0) {
    return errno_now().error("set host name " + quote(name));
  }
  return {};
}

Result<void> set_domainname(const std::string& name) {
  if (::setdomainname(name.c_str(), name.size()) != 0) {
    return errno_now().error("set domain name " + quote(name));
  }
  return {};
}

Result<void> raise_loopback() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno_now().error("bring up the loopback interface");
  struct ifreq request {};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) {
    return errno_now().error("bring up the loopback interface");
  }
  return {};
}

Result<long> file_system_type(const Fd& fd, const std::string& name) {
  struct statfs info {};
  if (::fstatfs(fd.get(), &info) != 0) return errno_now().error("examine " + quote(name));
  return static_cast<long>(info.f_type);
}

Result<void> change_directory(const Fd& directory, const std::string& name) {
  if (::fchdir(directory.get()) != 0) return errno_now().error("enter directory " + quote(name));
  return {};
}

}  // namespace berth::sys
