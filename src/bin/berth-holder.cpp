// SPDX-License-Identifier: Apache-2.0
// berth-holder: runs as long as berth-monitor and holds descriptors that must outlive
// berth-monitor.
//
//   berth-holder REPORT CLIENT CALLER QUEUE MONITOR ARGV0 [ARG…]
//
// It is the parent of MONITOR and keeps open the descriptors that it was started with: the lock of
// the container, and both ends of a socket pair. Through one of these the monitor parks the streams
// of the container (an unreceived message holds its descriptors). If the monitor is killed,
// berth-holder starts it again with "--adopt" added. The container's first process then becomes a
// child of berth-holder, which reports its end to the next monitor through QUEUE: {pid, status of
// wait4(2)} as int32. REPORT, CLIENT and CALLER (-1: none) are only for the monitor and are closed
// here.
//
// Runs as: the caller of berth. It has no libc and no heap, so that it adds only a stack and two
// pages of code to every detached container; it reads nothing but its arguments.
#include "holder/system.hpp"

namespace berth::holder {
namespace {

constexpr long kDoNotWait = 0x40;   // MSG_DONTWAIT
constexpr long kNoSignal = 0x4000;  // MSG_NOSIGNAL
constexpr int kMaxArguments = 64;
/// A monitor that dies this often has a bug.
constexpr int kMaxDeaths = 1000;

struct Ended {
  int pid;
  int status;
};

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

int number(const char* text) {
  if (*text == '-') return -1;
  int value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + (*text - '0');
  return value;
}

int start(const char* program, char** argv, char** envp, unsigned long mask) {
  long pid = call(__NR_clone, kSigChild);
  if (pid != 0) return static_cast<int>(pid);
  set_signal_mask(mask);
  call(__NR_execve, program, reinterpret_cast<long>(argv), reinterpret_cast<long>(envp));
  call(__NR_exit_group, 127L);
  return -1;
}

}  // namespace

extern "C" [[noreturn]] void berth_holder_main(long* stack);

extern "C" [[noreturn]] void berth_holder_main(long* stack) {
  int argc = static_cast<int>(stack[0]);
  char** argv = reinterpret_cast<char**>(stack + 1);
  char** envp = argv + argc + 1;
  if (argc < 7 || argc - 6 + 2 > kMaxArguments) end(125);
  const char* program = argv[5];
  int queue = number(argv[4]);

  char* words[kMaxArguments];
  int count = 0;
  for (int i = 6; i < argc; ++i) words[count++] = argv[i];
  words[count] = nullptr;

  call(__NR_prctl, kSetChildSubreaper, 1);
  // Signals are for the monitor: no signal that can be blocked ends this process.
  unsigned long mask = set_signal_mask(~0UL);
  int monitor = start(program, words, envp, mask);
  for (int i = 1; i <= 3; ++i) {
    if (int fd = number(argv[i]); fd > 2) call(__NR_close, static_cast<long>(fd));
  }
  static char adopt[] = "--adopt";
  if (!same(words[count - 1], adopt)) words[count++] = adopt;
  words[count] = nullptr;

  for (int deaths = 0; monitor > 0;) {
    int status = 0;
    long pid = call(__NR_wait4, -1L, reinterpret_cast<long>(&status));
    if (pid == -4 /* EINTR */) continue;
    if (pid < 0) end(1);
    if (pid != monitor) {
      Ended ended{static_cast<int>(pid), status};
      call(__NR_sendto, static_cast<long>(queue), reinterpret_cast<long>(&ended), sizeof ended,
           kDoNotWait | kNoSignal);
    } else if ((status & 0x7f) == 0) {
      end(status >> 8);  // the monitor was not killed: the container has ended
    } else {
      monitor = ++deaths < kMaxDeaths ? start(program, words, envp, mask) : -1;
    }
  }
  end(1);
}

}  // namespace berth::holder

BERTH_BEGIN_AT(berth_holder_main);
