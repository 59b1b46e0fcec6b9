// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/procfs.hpp"

#include <sched.h>
#include <unistd.h>

#include <utility>

#include "sys/mount/mount.hpp"
#include "sys/process/process.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

Result<void> mount_procfs() {
  Fd context = TRY(fsopen("proc"));
  TRY(fsconfig_create(context));
  TRY(fsmount(context, 0));
  return {};
}

}  // namespace

Result<void> try_procfs() {
  Cloned child = TRY(clone3(CLONE_NEWPID | CLONE_NEWNS, -1));
  if (child.pid == 0) {
    auto mounted = mount_procfs();
    ::_exit(mounted.ok() ? 0 : mounted.error().sys_errno);
  }
  Process process(child.pid, std::move(child.pidfd));
  ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  return sys_error(status.shell_code(), "mount a procfs");
}

}  // namespace berth::sys
