// SPDX-License-Identifier: Apache-2.0
#include "sys/process/scheduling.hpp"

#include <linux/sched/types.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace berth::sys {
namespace {

constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
constexpr size_t kMaxProcessors = 8192;
using Mask = std::vector<unsigned long>;

Mask mask_of(const std::vector<unsigned>& numbers) {
  Mask mask(1);
  for (unsigned number : numbers) {
    if (number / kWordBits >= mask.size()) mask.resize(number / kWordBits + 1);
    mask[number / kWordBits] |= 1UL << number % kWordBits;
  }
  return mask;
}

Error refused(int saved, const std::string& what) {
  Error error = sys_error(saved, what);
  if (saved == EINVAL) error.kind = Kind::usage;
  return error;
}

}  // namespace

Result<void> set_scheduling(const Scheduling& scheduling) {
  struct sched_attr attributes {};
  attributes.size = sizeof attributes;
  attributes.sched_policy = scheduling.policy;
  attributes.sched_flags = scheduling.flags;
  attributes.sched_nice = scheduling.nice;
  attributes.sched_priority = scheduling.priority;
  attributes.sched_runtime = scheduling.runtime;
  attributes.sched_deadline = scheduling.deadline;
  attributes.sched_period = scheduling.period;
  if (::syscall(SYS_sched_setattr, 0, &attributes, 0U) == 0) return {};
  int saved = errno;
  return refused(saved, "set the scheduling policy");
}

Result<void> set_io_priority(int io_class, int level) {
  constexpr int kThread = 1;  // IOPRIO_WHO_PROCESS
  constexpr int kClassShift = 13;
  if (::syscall(SYS_ioprio_set, kThread, 0, io_class << kClassShift | level) == 0) return {};
  int saved = errno;
  return refused(saved, "set the I/O priority");
}

Result<void> set_memory_policy(int mode, const std::vector<unsigned>& nodes) {
  Mask mask = mask_of(nodes);
  // One more, because the kernel reads one bit less than the given number.
  unsigned long bits = nodes.empty() ? 0 : mask.size() * kWordBits + 1;
  const unsigned long* given = nodes.empty() ? nullptr : mask.data();
  if (::syscall(SYS_set_mempolicy, mode, given, bits) == 0) return {};
  int saved = errno;
  return refused(saved, "set the memory policy");
}

Result<int> memory_policy() {
  int mode = 0;
  if (::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) == 0) return mode;
  return errno_now().error("read the memory policy");
}

Result<void> set_personality(unsigned long persona) {
  if (::personality(persona) >= 0) return {};
  int saved = errno;
  return refused(saved, "set the personality");
}

Result<void> set_affinity(const std::vector<unsigned>& processors) {
  Mask mask = mask_of(processors);
  if (::syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof(long), mask.data()) == 0) return {};
  int saved = errno;
  return refused(saved, "set the processors to run on");
}

Result<void> reset_affinity() {
  std::array<unsigned long, kMaxProcessors / kWordBits> mask{};
  mask.fill(~0UL);
  if (::syscall(SYS_sched_setaffinity, 0, sizeof mask, mask.data()) == 0) return {};
  return errno_now().error("run on all processors");
}

Result<std::vector<unsigned>> affinity() {
  std::array<unsigned long, kMaxProcessors / kWordBits> mask{};
  long size = ::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask.data());
  if (size < 0) return errno_now().error("read the processors to run on");
  std::vector<unsigned> processors;
  for (unsigned number = 0; number < static_cast<size_t>(size) * CHAR_BIT; ++number) {
    if (mask[number / kWordBits] >> number % kWordBits & 1) processors.push_back(number);
  }
  return processors;
}

}  // namespace berth::sys
