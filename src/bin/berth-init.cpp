// SPDX-License-Identifier: Apache-2.0
// berth-init: the first process of a container started with --init.
//
//   berth-init -- PROGRAM [ARG…]
//
// Starts PROGRAM, forwards every signal that can be forwarded, reaps orphans, and ends with the
// status of PROGRAM, or 128 plus the number of the signal that killed PROGRAM. If PROGRAM cannot be
// started, the status is 127 (not found) or 126.
//
// Runs as: the container's user, in the container. It has no libc and no heap: it adds only a stack
// and a page of code to a container, and runs in images of any libc.
#include "holder/system.hpp"

namespace berth::holder {
namespace {

constexpr long kSetForeground = 0x5410;  // TIOCSPGRP
constexpr long kNoHang = 1;              // WNOHANG
constexpr long kNotFound = -2;           // ENOENT
constexpr long kNotDirectory = -20;      // ENOTDIR
constexpr long kInterrupted = -4;        // EINTR
constexpr int kMaxPath = 4096;

/// The signals that are not forwarded: faults of this process, and SIGTTIN and SIGTTOU, which a
/// terminal sends.
constexpr unsigned long bit(int signal) {
  return 1UL << (signal - 1);
}
constexpr unsigned long kNotPassed =
    bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(31) | bit(21) | bit(22);

unsigned long length_of(const char* text) {
  unsigned long length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

void say(const char* text) {
  call(__NR_write, 2, reinterpret_cast<long>(text), static_cast<long>(length_of(text)));
}

bool starts_with(const char* text, const char* start) {
  while (*start != '\0' && *text == *start) ++text, ++start;
  return *start == '\0';
}

bool has_slash(const char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '/') return true;
  }
  return false;
}

long execute(const char* path, char** argv, char** envp) {
  return call(__NR_execve, path, reinterpret_cast<long>(argv), reinterpret_cast<long>(envp));
}

/// Like execvp(3), searches PATH for a name without a slash. Returns only on failure, with the
/// reason.
long search(char** argv, char** envp) {
  if (has_slash(argv[0])) return execute(argv[0], argv, envp);
  const char* path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (char** entry = envp; *entry != nullptr; ++entry) {
    if (starts_with(*entry, "PATH=")) path = *entry + 5;
  }
  long why = kNotFound;
  unsigned long name = length_of(argv[0]);
  while (*path != '\0') {
    unsigned long directory = 0;
    while (path[directory] != '\0' && path[directory] != ':') ++directory;
    char full[kMaxPath];
    if (directory > 0 && directory + name + 2 <= sizeof full) {
      char* to = full;
      for (unsigned long i = 0; i < directory; ++i) *to++ = path[i];
      *to++ = '/';
      for (unsigned long i = 0; i <= name; ++i) *to++ = argv[0][i];
      long failed = execute(full, argv, envp);
      if (failed != kNotFound && failed != kNotDirectory) why = failed;
    }
    path += directory;
    if (*path == ':') ++path;
  }
  return why;
}

/// Makes keys of the terminal signal the program and its children, not this process.
void take_terminal() {
  call(__NR_setpgid, 0L, 0L);
  int group = static_cast<int>(call(__NR_getpid));
  call(__NR_ioctl, 0L, kSetForeground, reinterpret_cast<long>(&group));
}

int start(char** argv, char** envp, unsigned long mask) {
  long pid = call(__NR_clone, kSigChild);
  if (pid != 0) return static_cast<int>(pid);
  take_terminal();
  set_signal_mask(mask);
  long why = search(argv, envp);
  say("berth-init: cannot run '");
  say(argv[0]);
  say(why == kNotFound || why == kNotDirectory ? "': No such file or directory\n"
                                               : "': it cannot be executed\n");
  end(why == kNotFound || why == kNotDirectory ? 127 : 126);
}

/// Reaps all ended children. Ends this process when `child` has ended.
void reap(int child) {
  while (true) {
    int status = 0;
    long pid = call(__NR_wait4, -1L, reinterpret_cast<long>(&status), kNoHang);
    if (pid == kInterrupted) continue;
    if (pid <= 0) return;
    if (pid != child) continue;
    int signal = status & 0x7f;
    end(signal == 0 ? (status >> 8) & 0xff : 128 + signal);
  }
}

}  // namespace

extern "C" [[noreturn]] void berth_init_main(long* stack);

extern "C" [[noreturn]] void berth_init_main(long* stack) {
  int argc = static_cast<int>(stack[0]);
  char** argv = reinterpret_cast<char**>(stack + 1);
  char** envp = argv + argc + 1;
  int first = argc > 1 && starts_with(argv[1], "--") && argv[1][2] == '\0' ? 2 : 1;
  if (first >= argc) end(125);
  // In a shared pid namespace this is not the first process. As a subreaper it still gets the
  // orphans.
  call(__NR_prctl, kSetChildSubreaper, 1);
  // Blocked signals stay pending for us, even those that the kernel does not deliver to an init.
  const unsigned long passed = ~kNotPassed;
  unsigned long mask = set_signal_mask(passed);
  int child = start(argv + first, envp, mask);
  if (child < 0) end(125);
  while (true) {
    reap(child);
    long signal = call(__NR_rt_sigtimedwait, reinterpret_cast<long>(&passed), 0, 0, sizeof passed);
    if (signal <= 0 || signal == kSigChild) continue;
    call(__NR_kill, static_cast<long>(child), signal);
  }
}

}  // namespace berth::holder

BERTH_BEGIN_AT(berth_init_main);
