// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asm/unistd.h>
#include <linux/wait.h>

#include <cstddef>

/// The few system calls that berth-holder, a program without libc, makes. Each returns the kernel's
/// result, so a failure is a negative errno.
namespace berth::holder {

#if defined(__x86_64__)

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}

#else
#error "berth-holder: how are system calls made on this processor?"
#endif

inline long call(long number, const void* a, long b = 0, long c = 0) {
  return call(number, reinterpret_cast<long>(a), b, c);
}

constexpr long kSetChildSubreaper = 36;  // PR_SET_CHILD_SUBREAPER
constexpr long kSigChild = 17;           // SIGCHLD

/// Returns the previous mask.
inline unsigned long set_signal_mask(unsigned long mask) {
  unsigned long before = 0;
  call(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&mask),
       reinterpret_cast<long>(&before), sizeof mask);
  return before;
}

[[noreturn]] inline void end(int status) {
  while (true) call(__NR_exit_group, static_cast<long>(status));
}

}  // namespace berth::holder

/// Defines _start, which calls `function` with the initial stack.
#if defined(__x86_64__)
#define BERTH_BEGIN_AT(function) \
  asm(".globl _start\n"          \
      "_start:\n"                \
      "  xor %ebp, %ebp\n"       \
      "  mov %rsp, %rdi\n"       \
      "  and $-16, %rsp\n"       \
      "  call " #function "\n")
#elif defined(__aarch64__)
#define BERTH_BEGIN_AT(function) \
  asm(".globl _start\n"          \
      "_start:\n"                \
      "  mov x29, #0\n"          \
      "  mov x30, #0\n"          \
      "  mov x0, sp\n"           \
      "  bl " #function "\n")
#endif
