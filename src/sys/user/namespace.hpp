// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

struct Cloned {
  pid_t pid = 0;  ///< 0 in the child
  Fd pidfd;       ///< in the parent
};

/// Makes a child that continues at this call with a copy of our memory; for processes without
/// threads. `flags` are CLONE_NEW*, and CLONE_PARENT for a sibling instead of a child; `cgroup` is
/// a cgroup v2 directory to start in, or -1. Errors: unsupported (Linux < 5.7 for a cgroup), busy,
/// denied, io. clone3(2), else clone(2)
Result<Cloned> clone3(uint64_t flags, int cgroup);

/// setns(2); `name` is for errors.
Result<void> setns(const Fd& space, int type, const std::string& name);
/// unshare(2)
Result<void> unshare(int flags, const std::string& what);

/// Makes the directory `root` the root of this mount namespace and detaches the old one.
/// Errors: unsupported (the machine runs from its initramfs, which cannot be detached).
/// pivot_root(2)
Result<void> pivot_root(const Fd& root);
/// The alternative if pivot_root() fails: moves the mount of `root` over "/" and enters it.
/// chroot(2)
Result<void> move_root(const Fd& root);

/// Makes `root` the root and the working directory of this process only. chroot(2)
Result<void> change_root(const Fd& root, const std::string& name);

/// sethostname(2), setdomainname(2)
Result<void> set_hostname(const std::string& name);
Result<void> set_domainname(const std::string& name);

/// Brings "lo" up in the network namespace of this process. netdevice(7) SIOCSIFFLAGS
Result<void> raise_loopback();

/// The type of the file system that `fd` is on, a *_MAGIC. fstatfs(2)
Result<long> file_system_type(const Fd& fd, const std::string& name);

/// fchdir(2), chdir(2)
Result<void> change_directory(const Fd& directory, const std::string& name);

}  // namespace berth::sys
