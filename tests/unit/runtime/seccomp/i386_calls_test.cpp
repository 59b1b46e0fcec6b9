// SPDX-License-Identifier: Apache-2.0
#include "runtime/seccomp/i386_calls.hpp"

#include <gtest/gtest.h>
#include <seccomp.h>

#include <cstdlib>
#include <string>

namespace berth::runtime {
namespace {

#ifdef __x86_64__
TEST(I386Calls, are_those_of_libseccomp) {
  size_t known = 0;
  for (int number = 0; number < 600; ++number) {
    char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, number);
    if (name == nullptr) continue;
    // libseccomp has numbers of its own for calls through socketcall and ipc.
    bool is_direct = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, name) == number;
    auto found = find_i386_call(name);
    auto expected = static_cast<uint32_t>(number);
    EXPECT_TRUE(!found || !is_direct || *found == expected) << name;
    known += found ? 1 : 0;
    std::free(name);
  }
  EXPECT_GT(known, 350U);
}
#endif

TEST(I386Calls, a_name_that_is_none_is_not_found) {
  for (const char* name : {"", "read2", "rea", "zzz", "NULL"}) {
    EXPECT_FALSE(find_i386_call(name)) << name;
  }
}

}  // namespace
}  // namespace berth::runtime
