// SPDX-License-Identifier: Apache-2.0
#include "spank/join.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "spank/message.hpp"

namespace berth::spank {
namespace {

using slurm::Handle;

constexpr size_t kMaxEnvironment = size_t{8} << 20;
constexpr uint32_t kMaxInstructions = 4096;  // BPF_MAXINSNS

Result<std::optional<Handles>> receive_answer(int socket) {
  Handles handles;
  int fds[slurm::kHandles];
  Received got = receive(socket, &handles.answer, sizeof handles.answer, fds, slurm::kHandles);
  bool nobody = got.bytes == 0 || (got.bytes < 0 && errno == ECONNRESET);
  if (nobody) return std::optional<Handles>();
  if (got.bytes < 0) return errno_now().error("wait for the container of this step");
  int named = __builtin_popcount(handles.answer.handles & slurm::kAllHandles);
  if (got.bytes != sizeof handles.answer || got.fds != named ||
      (handles.answer.handles & ~slurm::kAllHandles) != 0) {
    return make_error(Kind::corrupt, "the container of this step gave no valid answer");
  }
  int next = 0;
  for (int bit = 0; bit < slurm::kHandles; ++bit) {
    if ((handles.answer.handles >> bit & 1) != 0) handles.fds[bit] = fds[next++];
  }
  return std::optional<Handles>(handles);
}

struct Space {
  Handle handle;
  int flag;
  const char* own;
  const char* name;
};
constexpr std::array<Space, 6> kSpaces = {{
    {slurm::kUserSpace, CLONE_NEWUSER, "/proc/self/ns/user", "user"},
    {slurm::kCgroupSpace, CLONE_NEWCGROUP, "/proc/self/ns/cgroup", "cgroup"},
    {slurm::kIpcSpace, CLONE_NEWIPC, "/proc/self/ns/ipc", "IPC"},
    {slurm::kUtsSpace, CLONE_NEWUTS, "/proc/self/ns/uts", "UTS"},
    {slurm::kNetworkSpace, CLONE_NEWNET, "/proc/self/ns/net", "network"},
    {slurm::kMountSpace, CLONE_NEWNS, "/proc/self/ns/mnt", "mount"},
}};

Result<void> enter_space(const Handles& handles, const Space& space) {
  int fd = handles.fd(space.handle);
  struct stat theirs {};
  struct stat ours {};
  if (fd < 0 || ::fstat(fd, &theirs) != 0) {
    return make_error(Kind::not_found, "the container shows no " + std::string(space.name) +
                                           " namespace (is there a /proc in it?)");
  }
  if (::stat(space.own, &ours) == 0 && ours.st_ino == theirs.st_ino &&
      ours.st_dev == theirs.st_dev) {
    return {};
  }
  if (::setns(fd, space.flag) != 0) {
    return errno_now().error("join the " + std::string(space.name) + " namespace of the container");
  }
  return {};
}

/// Enters the working directory by a handle that the container itself could open, so the handle
/// cannot lead out of the container. A path would be resolved with all the rights that this task
/// still has.
Result<void> enter_directory(const Handles& handles) {
  if (::fchdir(handles.fd(slurm::kDirectory)) != 0) {
    return errno_now().error("change to the working directory of the container");
  }
  return {};
}

Result<void> load_filter(const std::vector<sock_filter>& program, unsigned flags) {
  if (program.empty()) return {};
  sock_fprog described{static_cast<unsigned short>(program.size()),
                       const_cast<sock_filter*>(program.data())};  // the kernel only reads
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &described) != 0) {
    return errno_now().error("load the seccomp program of the container");
  }
  return {};
}

/// Keeps the capabilities that a process started in the container has, and drops those that were
/// needed only for joining.
Result<void> drop_capabilities(uint64_t bounding) {
  for (unsigned long number = 0; number <= CAP_LAST_CAP; ++number) {
    if ((bounding >> number & 1) != 0) continue;
    // EINVAL: the kernel does not have this capability.
    if (::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno != EINVAL) {
      return errno_now().error("drop capabilities");
    }
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  uint64_t kept = ::getuid() == 0 ? bounding : 0;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return errno_now().error("read capabilities");
  for (int half = 0; half < 2; ++half) {
    auto part = static_cast<uint32_t>(kept >> (32 * half));
    sets[half].permitted &= part;
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, sets) != 0) return errno_now().error("drop capabilities");
  return {};
}

}  // namespace

int Handles::fd(Handle handle) const {
  return fds[__builtin_ctz(handle)];
}

Result<std::optional<Handles>> ask(int step) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return errno_now().error("make a socket pair");
  }
  bool sent = send(step, "j", 1, &pair[1], 1);
  SavedErrno error = errno_now();
  ::close(pair[1]);
  if (!sent) {
    ::close(pair[0]);
    // The other end is closed: the container has ended, or will not be started.
    if (error.value == EPIPE || error.value == ECONNRESET) return std::optional<Handles>();
    return error.error("ask for the container of this step");
  }
  auto handles = receive_answer(pair[0]);
  ::close(pair[0]);
  return handles;
}

Result<void> import_environment(
    const Handles& handles,
    const std::function<Result<void>(const char* name, const char* value)>& set) {
  std::string text;
  std::array<char, 65536> chunk;
  while (true) {
    ssize_t count = ::pread(handles.fd(slurm::kEnvironment), chunk.data(), chunk.size(),
                            static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_now().error("read the variables of the container");
    if (count == 0) break;
    text.append(chunk.data(), static_cast<size_t>(count));
    if (text.size() > kMaxEnvironment) {
      return make_error(Kind::corrupt, "the variables of the container are more than 8 MiB");
    }
  }
  for (size_t at = 0; at < text.size();) {
    std::string entry(text.c_str() + at);
    at += entry.size() + 1;
    size_t equals = entry.find('=');
    if (equals == 0 || equals == entry.npos) continue;
    TRY(set(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1));
  }
  return {};
}

Result<Confinement> read_confinement(int file) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
  Confinement out;
  int seals = ::fcntl(file, F_GET_SEALS);
  bool sealed = seals >= 0 && (seals & kSeals) == kSeals;
  if (!sealed || ::pread(file, &out.rights, sizeof out.rights, 0) != sizeof out.rights ||
      out.rights.instructions > kMaxInstructions) {
    return make_error(Kind::corrupt, "berth did not send the rights of the container's processes");
  }
  out.program.resize(out.rights.instructions);
  size_t bytes = out.program.size() * sizeof(sock_filter);
  ssize_t count = ::pread(file, out.program.data(), bytes, sizeof out.rights);
  if (count != static_cast<ssize_t>(bytes)) {
    return make_error(Kind::corrupt, "the seccomp program of the container is cut short");
  }
  return out;
}

Result<void> join(const Handles& handles, const Confinement& confinement) {
  // Processes of the container must not trace this process while it has more rights than they have.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno_now().error("forbid tracing");
  for (const Space& space : kSpaces) TRY(enter_space(handles, space));
  TRY(enter_directory(handles));
  if (confinement.rights.no_new_privileges != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return errno_now().error("forbid new privileges");
  }
  TRY(load_filter(confinement.program, confinement.rights.seccomp_flags));
  for (int fd : handles.fds) {
    if (fd >= 0) ::close(fd);
  }
  // For a task of root no device cgroup limits which nodes it may open.
  return drop_capabilities(confinement.rights.bounding & ~(uint64_t{1} << CAP_MKNOD));
}

}  // namespace berth::spank
