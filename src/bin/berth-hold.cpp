// SPDX-License-Identifier: Apache-2.0
// berth-hold: the first process of a container that the tasks of a Slurm step share.
//
//   berth-hold          with the descriptor of slurm/hold.hpp
//
// Answers requests on the socket of the step with handles of the container's namespaces, and ends
// when no process can send a request any more. Signals do not end it: the tasks of the step receive
// the same signals, and decide what to do.
//
// Runs as: the container's user, in the container, with its seccomp filter. It has no libc and no
// heap, so it runs in images of any libc.
#include "holder/system.hpp"
#include "slurm/hold.hpp"

namespace berth::slurm {
namespace {

using holder::call;
using holder::end;

constexpr long kReadOnly = 0x80000;             // O_RDONLY | O_CLOEXEC
constexpr long kPathOnly = 0x80000 | 0x200000;  // O_PATH | O_CLOEXEC
constexpr long kHere = -100;                    // AT_FDCWD
constexpr int kSocketLevel = 1;                 // SOL_SOCKET
constexpr int kRights = 1;                      // SCM_RIGHTS
constexpr long kCloseOnExec = 0x40000000;       // MSG_CMSG_CLOEXEC
constexpr long kNoSignal = 0x4000;              // MSG_NOSIGNAL
constexpr long kInterrupted = -4;               // EINTR

struct Vector {
  void* base;
  unsigned long length;
};

/// struct msghdr of the kernel.
struct Message {
  void* name = nullptr;
  int name_length = 0;
  Vector* vectors = nullptr;
  unsigned long vector_count = 0;
  void* control = nullptr;
  unsigned long control_length = 0;
  unsigned flags = 0;
};

/// struct cmsghdr of the kernel, with room for all descriptors of a message.
struct alignas(8) Control {
  unsigned long length;
  int level;
  int type;
  int fds[kHandles + 1];
};
constexpr unsigned long kControlHead = 16;

void close(long fd) {
  if (fd >= 0) call(__NR_close, fd);
}

/// The descriptor in the next request. -1: the request has none; -2: there will be no more
/// requests.
long next_asker() {
  char byte = 0;
  Vector vector{&byte, 1};
  Control control{};
  Message message;
  message.vectors = &vector;
  message.vector_count = 1;
  message.control = &control;
  message.control_length = sizeof control;
  long count = call(__NR_recvmsg, static_cast<long>(kHoldSocket), reinterpret_cast<long>(&message),
                    kCloseOnExec);
  if (count == kInterrupted) return -1;
  if (count <= 0) return -2;
  if (message.control_length < kControlHead + sizeof(int)) return -1;
  if (control.level != kSocketLevel || control.type != kRights) return -1;
  int received = static_cast<int>((control.length - kControlHead) / sizeof(int));
  for (int i = 1; i < received; ++i) close(control.fds[i]);
  return control.fds[0];
}

long open(const char* path, long flags) {
  return call(__NR_openat, kHere, reinterpret_cast<long>(path), flags);
}

void answer(long asker, long environment) {
  // Static: a copy on the stack would call memcpy, which does not exist here.
  static constexpr struct {
    Handle handle;
    const char* path;
    long flags;
  } kFiles[] = {{kUserSpace, "/proc/self/ns/user", kReadOnly},
                {kCgroupSpace, "/proc/self/ns/cgroup", kReadOnly},
                {kIpcSpace, "/proc/self/ns/ipc", kReadOnly},
                {kUtsSpace, "/proc/self/ns/uts", kReadOnly},
                {kNetworkSpace, "/proc/self/ns/net", kReadOnly},
                {kMountSpace, "/proc/self/ns/mnt", kReadOnly},
                {kDirectory, ".", kPathOnly}};
  HoldAnswer answer;
  Control control{};
  int count = 0;
  for (const auto& file : kFiles) {
    long fd = open(file.path, file.flags);
    if (fd < 0) continue;  // a task that needs it reports that it is missing
    answer.handles |= file.handle;
    control.fds[count++] = static_cast<int>(fd);
  }
  int opened = count;
  if (environment >= 0) {
    answer.handles |= kEnvironment;
    control.fds[count++] = static_cast<int>(environment);
  }
  control.length = kControlHead + static_cast<unsigned long>(count) * sizeof(int);
  control.level = kSocketLevel;
  control.type = kRights;
  Vector vector{&answer, sizeof answer};
  Message message;
  message.vectors = &vector;
  message.vector_count = 1;
  message.control = &control;
  message.control_length = control.length;
  call(__NR_sendmsg, asker, reinterpret_cast<long>(&message), kNoSignal);
  for (int i = 0; i < opened; ++i) close(control.fds[i]);
}

}  // namespace

extern "C" [[noreturn]] void berth_hold_main();

extern "C" [[noreturn]] void berth_hold_main() {
  long environment = open("/proc/self/environ", kReadOnly);
  unsigned long all = ~0UL;
  call(__NR_rt_sigprocmask, 2L /* SIG_SETMASK */, reinterpret_cast<long>(&all), 0, sizeof all);
  while (true) {
    long asker = next_asker();
    if (asker == -2) end(0);
    if (asker < 0) continue;
    answer(asker, environment);
    close(asker);
  }
}

}  // namespace berth::slurm

BERTH_BEGIN_AT(berth_hold_main);
