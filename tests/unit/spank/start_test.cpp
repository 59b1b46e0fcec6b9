// SPDX-License-Identifier: Apache-2.0
#include "spank/start.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <utility>

namespace berth::spank {
namespace {

constexpr uid_t kUser = 12345;

std::string own_mounts() {
  std::array<char, 64> room{};
  ssize_t count = ::readlink("/proc/self/ns/mnt", room.data(), room.size() - 1);
  return std::string(room.data(), count > 0 ? static_cast<size_t>(count) : 0);
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 256> room;
  for (ssize_t count = 0; (count = ::read(fd, room.data(), room.size())) > 0;) {
    out.append(room.data(), static_cast<size_t>(count));
  }
  return out;
}

/// As slurmstepd does: forks what waits while its effective user is `user`, and then a task, which
/// is the user, calls `enter` and lets it begin. {errno of begin_berth(), what the program said}.
class Start : public ::testing::Test {
 protected:
  std::pair<int, std::string> run(uid_t user, const std::function<bool()>& enter) {
    int pair[2];
    int said[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    EXPECT_EQ(::pipe(said), 0);
    Program program;
    program.path = "/bin/sh";
    program.words = {"-c", "readlink /proc/self/ns/mnt; pwd; id -u; id -ru"};
    program.step = pair[1];
    program.rights = ::memfd_create("rights", MFD_CLOEXEC);
    program.shows_output = true;
    EXPECT_EQ(::seteuid(user), 0);
    auto waiting = fork_berth(program);
    EXPECT_EQ(::seteuid(::getuid()), 0);
    if (!waiting.ok()) return {-1, to_line(waiting.error())};
    pid_t task = ::fork();
    if (task == 0) {
      bool ready = ::setresuid(user, user, user) == 0 && enter() && ::dup2(said[1], 2) == 2;
      if (!ready) _exit(255);
      auto begun = begin_berth(waiting->order, {"PATH=/usr/bin:/bin"});
      _exit(begun.ok() ? 0 : begun.error().sys_errno);
    }
    for (int fd : {waiting->order, said[1], pair[0], pair[1], program.rights}) ::close(fd);
    std::string out = read_all(said[0]);
    int status = 0;
    ::waitpid(task, &status, 0);
    ::close(said[0]);
    ::close(waiting->process);
    return {WEXITSTATUS(status), out};
  }
};

TEST_F(Start, is_where_the_task_is_as_the_task_is) {
  const std::string user = std::to_string(::geteuid());
  auto [error, said] = run(::geteuid(), [] { return true; });
  EXPECT_EQ(error, 0) << said;
  std::array<char, 4096> here{};
  ASSERT_NE(::getcwd(here.data(), here.size()), nullptr);
  EXPECT_EQ(said, own_mounts() + "\n" + here.data() + "\n" + user + "\n" + user + "\n");
}

// As job_container/tmpfs has made them, before the task became the user.
TEST_F(Start, follows_the_task_into_mounts_that_root_has_made) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string before = own_mounts();
  auto [error, said] = run(0, [] { return ::unshare(CLONE_NEWNS) == 0 && ::chdir("/usr") == 0; });
  EXPECT_EQ(error, 0) << said;
  EXPECT_NE(said.substr(0, said.find('\n')), before);
  EXPECT_EQ(said.substr(said.find('\n') + 1), "/usr\n0\n0\n");
}

TEST_F(Start, follows_nobody_into_mounts_of_his_own_making) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  auto enter = [] { return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0; };
  for (uid_t user : {uid_t{0}, kUser}) {
    auto [error, said] = run(user, enter);
    EXPECT_EQ(error, EPERM) << user;
    EXPECT_EQ(said, "") << user;
  }
}

TEST_F(Start, becomes_the_user_for_good) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  auto [error, said] = run(kUser, [] { return true; });
  EXPECT_EQ(error, 0) << said;
  EXPECT_NE(said.find("\n12345\n12345\n"), said.npos) << said;
}

}  // namespace
}  // namespace berth::spank
