// SPDX-License-Identifier: Apache-2.0
#include "sys/process/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace berth::sys {
namespace {

using std::chrono::milliseconds;

SpawnOptions shell(const std::string& script) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.args = {"sh", "-c", script};
  return options;
}

TEST(Spawn, reports_exit_codes_and_signals) {
  auto seven = spawn(shell("exit 7"));
  EXPECT_EQ(seven->wait()->shell_code(), 7);
  auto killed = spawn(shell("kill -TERM $$"));
  EXPECT_EQ(killed->wait()->shell_code(), 128 + SIGTERM);
}

TEST(Spawn, reports_a_missing_program_in_the_parent) {
  SpawnOptions options;
  options.program = "/nonexistent/program";
  options.args = {"program"};
  EXPECT_EQ(to_line(spawn(options).error()),
            "start '/nonexistent/program': No such file or directory");
}

TEST(Spawn, passes_only_the_descriptors_to_keep) {
  auto pipe = make_pipe();
  int leaked = ::fcntl(pipe->read.get(), F_DUPFD, 100);  // no CLOEXEC
  Fd kept = *duplicate(pipe->write);
  SpawnOptions options = shell("ls /proc/$$/fd | tr '\\n' ' '");
  options.keep = {kept.get()};
  auto output = run_command(options, "", milliseconds(5000));
  ::close(leaked);
  ASSERT_TRUE(output.ok()) << to_line(output.error());
  EXPECT_NE(output->out.find(std::to_string(kept.get()) + " "), std::string::npos) << output->out;
  EXPECT_EQ(output->out.find("100"), std::string::npos) << output->out;
}

TEST(Spawn, gives_one_descriptor_the_number_that_the_child_expects) {
  auto pipe = make_pipe();
  Fd high(::fcntl(pipe->write.get(), F_DUPFD_CLOEXEC, 100));
  SpawnOptions options = shell("echo here >&3; ls /proc/$$/fd | tr '\\n' ' '");
  options.third = high.get();
  options.keep = {3};
  auto output = run_command(options, "", milliseconds(5000));
  ASSERT_TRUE(output.ok()) << to_line(output.error());
  std::array<char, 16> bytes{};
  EXPECT_EQ(::read(pipe->read.get(), bytes.data(), bytes.size()), 5);
  EXPECT_EQ(std::string(bytes.data(), 5), "here\n");
  EXPECT_EQ(output->out.find("100"), std::string::npos) << output->out;
}

TEST(RunCommand, feeds_input_and_collects_both_streams) {
  std::string big(300000, 'x');
  auto output = run_command(shell("cat; echo err >&2; exit 3"), big, milliseconds(5000));
  ASSERT_TRUE(output.ok()) << to_line(output.error());
  EXPECT_EQ(output->out, big);
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->status.code, 3);
}

TEST(RunCommand, ends_a_child_that_hangs_or_floods) {
  EXPECT_EQ(to_line(run_command(shell("sleep 60"), "", milliseconds(50)).error()),
            "run '/bin/sh': no end within 50 ms");
  EXPECT_EQ(to_line(run_command(shell("yes"), "", milliseconds(5000), 1000).error()),
            "run '/bin/sh': prints more than 1000 bytes");
}

TEST(Process, start_time_names_this_process) {
  EXPECT_GT(*process_start_time(::getpid()), 0u);
  EXPECT_FALSE(process_start_time(999999999).ok());
  EXPECT_EQ(boot_id()->size(), 36u);
}

TEST(Runs, neither_a_zombie_nor_another_process_of_the_same_number) {
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  auto start = process_start_time(child);
  ASSERT_TRUE(start.ok());
  EXPECT_TRUE(runs(child, *start));
  EXPECT_FALSE(runs(child, *start + 1));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(process_start_time(child).ok());
  EXPECT_FALSE(runs(child, *start));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(runs(child, *start));
}

}  // namespace
}  // namespace berth::sys
