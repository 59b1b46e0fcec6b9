// SPDX-License-Identifier: Apache-2.0
#include "sys/user/confine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

/// How a confined child ends that does `work`, with the file `out` open.
ExitStatus end_of(const Fd& out, const std::function<int()>& work) {
  auto child = clone3(0, -1);
  EXPECT_TRUE(child.ok());
  if (child->pid == 0) ::_exit(confine({out.get()}).ok() ? work() : 99);
  Process process(child->pid, std::move(child->pidfd));
  return *process.wait();
}

TEST(Confine, leaves_memory_and_what_is_kept_open) {
  Fd out = *memory_file("out", "");
  ExitStatus status = end_of(out, [&] {
    std::string large(20 << 20, 'x');
    return write_all(out, large.substr(0, 5), "").ok() ? 7 : 1;
  });
  EXPECT_EQ(status.signal, 0);
  EXPECT_EQ(status.code, 7);
  EXPECT_EQ(*read_file(cwd(), fd_path(out)), "xxxxx");
}

TEST(Confine, ends_whoever_opens_a_file_or_makes_memory_executable) {
  Fd out = *memory_file("out", "");
  auto opens = [] { return ::open("/etc/passwd", O_RDONLY) >= 0 ? 1 : 2; };
  EXPECT_EQ(end_of(out, opens).signal, SIGSYS);
  auto maps = [] {
    return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           nullptr;
  };
  EXPECT_EQ(end_of(out, maps).signal, SIGSYS);
  auto becomes = [] { return ::setuid(0) == 0 ? 1 : 2; };
  EXPECT_EQ(end_of(out, becomes).signal, SIGSYS);
}

TEST(Confine, closes_what_is_not_kept) {
  Fd out = *memory_file("out", "");
  Fd secret = *memory_file("secret", "s");
  auto reads = [&] {
    char byte = 0;
    return ::read(secret.get(), &byte, 1) < 0 ? 5 : 6;
  };
  EXPECT_EQ(end_of(out, reads).code, 5);
}

}  // namespace
}  // namespace berth::sys
