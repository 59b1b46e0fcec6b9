// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "sys/file.hpp"
#include "sys/process.hpp"
#include "sys/remove_tree.hpp"

namespace berth::sys {
namespace {

using std::chrono::milliseconds;

TempDir make_temp() {
  Fd base = *open_at(cwd(), ::testing::TempDir(), O_RDONLY | O_DIRECTORY);
  return *TempDir::make(base, "sys-");
}

TEST(Files, replace_leaves_no_temporary_behind) {
  TempDir temp = make_temp();
  ASSERT_TRUE(replace_file(temp.fd(), "a", "one").ok());
  ASSERT_TRUE(replace_file(temp.fd(), "a", "two", 0600, Sync::yes).ok());
  EXPECT_EQ(*read_file(temp.fd(), "a"), "two");
  ASSERT_TRUE(make_directory(temp.fd(), "d").ok());
  EXPECT_FALSE(replace_file(temp.fd(), "d", "three").ok());
  EXPECT_EQ(*list_directory(temp.fd(), "."), (std::vector<std::string>{"a", "d"}));
}

TEST(Files, read_refuses_more_than_its_limit) {
  TempDir temp = make_temp();
  ASSERT_TRUE(write_file(temp.fd(), "big", std::string(101, 'x')).ok());
  EXPECT_EQ(to_line(read_file(temp.fd(), "big", 100).error()), "read 'big': larger than 100 bytes");
}

TEST(Files, absence_is_a_value_where_the_name_says_so) {
  TempDir temp = make_temp();
  EXPECT_FALSE(read_file_if_exists(temp.fd(), "none")->has_value());
  EXPECT_EQ(to_line(read_file(temp.fd(), "none").error()),
            "open 'none': No such file or directory");
}

TEST(Files, remove_tree_follows_no_link_and_opens_locked_directories) {
  TempDir temp = make_temp();
  ASSERT_TRUE(make_directories(temp.fd(), "keep/inner").ok());
  ASSERT_TRUE(make_directories(temp.fd(), "tree/locked/below").ok());
  ASSERT_TRUE(make_symlink("../keep", temp.fd(), "tree/link").ok());
  ASSERT_EQ(::fchmodat(temp.fd().get(), "tree/locked", 0, 0), 0);
  ASSERT_TRUE(remove_tree(temp.fd(), "tree").ok());
  EXPECT_EQ(*list_directory(temp.fd(), "."), (std::vector<std::string>{"keep"}));
  EXPECT_EQ(*list_directory(temp.fd(), "keep"), (std::vector<std::string>{"inner"}));
  EXPECT_TRUE(remove_tree(temp.fd(), "tree").ok());
}

TEST(Files, remove_tree_removes_what_is_deeper_than_there_are_descriptors) {
  TempDir temp = make_temp();
  ASSERT_TRUE(make_directory(temp.fd(), "tree").ok());
  ASSERT_TRUE(make_directory(temp.fd(), "tree/.moved-up-0").ok());  // a name that we would take
  ASSERT_TRUE(write_file(temp.fd(), "tree/.moved-up-0/kept", "").ok());
  for (const char* start : {"tree", "tree/.moved-up-0"}) {
    Fd here = *open_at(temp.fd(), start, O_RDONLY | O_DIRECTORY);
    for (int depth = 0; depth < 5000; ++depth) {
      ASSERT_TRUE(make_directory(here, "d").ok());
      ASSERT_TRUE(write_file(here, "f", "").ok());
      here = *open_at(here, "d", O_RDONLY | O_DIRECTORY);
    }
    ASSERT_EQ(::fchmod(here.get(), 0500), 0);
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto removed = remove_tree(temp.fd(), "tree");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(removed.ok()) << to_line(removed.error()).substr(0, 200);
  EXPECT_TRUE(list_directory(temp.fd(), ".")->empty());
}

TEST(Files, a_lock_goes_with_its_owner) {
  TempDir temp = make_temp();
  Fd one = *open_at(temp.fd(), "lock", O_RDWR | O_CREAT, 0600);
  Fd two = *open_at(temp.fd(), "lock", O_RDWR);
  EXPECT_TRUE(*try_lock(one, LockMode::exclusive, "lock"));
  EXPECT_FALSE(*try_lock(two, LockMode::exclusive, "lock"));
  one.reset();
  EXPECT_TRUE(*try_lock(two, LockMode::exclusive, "lock"));
}

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

}  // namespace
}  // namespace berth::sys
