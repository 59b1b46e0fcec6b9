// SPDX-License-Identifier: Apache-2.0
#include "engine/state/directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/container/sweep.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

namespace fs = std::filesystem;

class ContainerDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("store-" + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  record::Container record(const std::string& id, const std::string& name) {
    record::Container made;
    made.id = id;
    made.name = name;
    made.image = "busybox";
    made.command = {"true"};
    made.created_ns = 1;
    return made;
  }

  std::string root() const { return root_; }
  Paths paths() const { return {root(), root() + "/state", "/none", "/"}; }
  fs::path root_;
  std::string a_ = std::string(64, 'a');
  std::string b_ = std::string(64, 'b');
};

TEST_F(ContainerDirectoryTest, is_owned_while_it_is_open) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(made.ok()) << to_line(made.error());
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  EXPECT_TRUE(read_container(paths(), a_)->owned);
  EXPECT_FALSE(*ContainerDirectory::take_over(paths(), a_));
  { ContainerDirectory gone = std::move(*made); }
  auto files = read_container(paths(), a_);
  EXPECT_FALSE(files->owned);
  EXPECT_FALSE(files->exit);
  EXPECT_EQ(files->record->name, "ab");
  EXPECT_TRUE(*ContainerDirectory::take_over(paths(), a_));
}

TEST_F(ContainerDirectoryTest, keeps_the_exit_status) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  ASSERT_TRUE(made->append(record::Exit{3, 99}).ok());
  auto files = read_container(paths(), a_);
  ASSERT_TRUE(files->exit);
  EXPECT_EQ(files->exit->exit_code, 3);
  EXPECT_EQ(files->exit->finished_ns, 99);
}

TEST_F(ContainerDirectoryTest, takes_half_an_exit_for_none) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  { std::ofstream(made->path() + "/container.json", std::ios::app) << "\n{\"exit_co"; }
  EXPECT_FALSE(read_container(paths(), a_)->exit);
  ASSERT_TRUE(made->append(record::Exit{std::nullopt, 99}).ok());
  auto files = read_container(paths(), a_);
  ASSERT_TRUE(files->exit);
  EXPECT_FALSE(files->exit->exit_code);
}

TEST_F(ContainerDirectoryTest, tells_the_end_to_who_waits_also_when_it_is_removed) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::removed);
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  auto waiter =
      std::async(std::launch::async, [&] { return ExitWaiter::open(paths(), a_)->wait(); });
  EXPECT_EQ(waiter.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  ASSERT_TRUE(made->append(record::Exit{3, 99}).ok());
  ASSERT_TRUE(made->remove().ok());
  { ContainerDirectory gone = std::move(*made); }
  auto files = waiter.get();
  ASSERT_TRUE(files.ok() && files->exit);
  EXPECT_EQ(files->exit->exit_code, 3);
}

TEST_F(ContainerDirectoryTest, gives_up_the_name_of_a_damaged_record) {
  {
    auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
    ASSERT_TRUE(made->write(record(a_, "ab")).ok());
    ASSERT_TRUE(made->reserve("ab").ok());
  }
  { std::ofstream(root_ / "containers" / a_ / "container.json") << "{"; }
  EXPECT_TRUE(read_container(paths(), a_)->damage);
  auto taken = ContainerDirectory::take_over(paths(), a_);
  ASSERT_TRUE(taken.ok() && *taken);
  ASSERT_TRUE((*taken)->remove().ok());
  EXPECT_TRUE(fs::is_empty(root_ / "names"));
}

TEST_F(ContainerDirectoryTest, leaves_nothing_when_it_is_removed) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  ASSERT_TRUE(made->reserve("ab").ok());
  ASSERT_TRUE(made->remove().ok());
  EXPECT_TRUE(fs::is_empty(root_ / "containers"));
  EXPECT_TRUE(fs::is_empty(root_ / "names"));
}

TEST_F(ContainerDirectoryTest, keeps_the_small_files_of_rm_in_the_state_directory) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::removed);
  ASSERT_TRUE(made.ok()) << to_line(made.error());
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  EXPECT_TRUE(fs::exists(root_ / "state/containers" / a_ / "container.json"));
  EXPECT_TRUE(fs::exists(root_ / "state/containers" / a_ / "bundle/rootfs"));
  EXPECT_FALSE(fs::exists(root_ / "containers" / a_ / "container.json"));
  EXPECT_EQ(read_container(paths(), a_)->record->name, "ab");
  { ContainerDirectory gone = std::move(*made); }
  auto taken = ContainerDirectory::take_over(paths(), a_);
  ASSERT_TRUE(taken.ok() && *taken);
  ASSERT_TRUE((*taken)->remove().ok());
  EXPECT_TRUE(fs::is_empty(root_ / "containers"));
  EXPECT_TRUE(fs::is_empty(root_ / "state/containers"));
}

TEST_F(ContainerDirectoryTest, gives_a_name_to_one_container) {
  auto a = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  auto b = ContainerDirectory::create(paths(), b_, Lifetime::kept);
  ASSERT_TRUE(reserve_name(root(), "web", a_).ok());
  auto second = reserve_name(root(), "web", b_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, Kind::exists);
  EXPECT_EQ(to_line(second.error()),
            "Conflict. The container name \"/web\" is already in use by container \"" + a_ +
                "\"; try: berth rm web");
  // Another container's name is not taken away.
  ASSERT_TRUE(release_name(root(), "web", b_).ok());
  EXPECT_EQ(*find_name(root(), "web"), a_);
}

TEST_F(ContainerDirectoryTest, takes_over_the_name_of_a_container_that_is_gone) {
  auto b = ContainerDirectory::create(paths(), b_, Lifetime::kept);
  ASSERT_TRUE(reserve_name(root(), "web", a_).ok());
  ASSERT_TRUE(reserve_name(root(), "web", b_).ok());
  EXPECT_EQ(*find_name(root(), "web"), b_);
}

TEST_F(ContainerDirectoryTest, is_marked_until_it_is_whole_and_while_it_goes) {
  fs::path marks = incomplete_directory(paths());
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(made.ok()) << to_line(made.error());
  EXPECT_TRUE(fs::exists(marks / a_));
  ASSERT_TRUE(made->write(record(a_, "ab")).ok());
  ASSERT_TRUE(made->reserve("ab").ok());
  EXPECT_TRUE(fs::is_empty(marks));
  ASSERT_TRUE(made->remove().ok());
  EXPECT_TRUE(fs::is_empty(marks));
}

TEST_F(ContainerDirectoryTest, a_sweep_finds_what_was_never_finished_by_its_mark) {
  NullLog log;
  Context context{paths(), Identity::root, {}, log};
  sweep(context);  // the first of a boot looks at all
  { auto killed = ContainerDirectory::create(paths(), a_, Lifetime::kept); }
  fs::path marks = incomplete_directory(paths());
  fs::create_directory(marks / b_);  // killed before the container's own directory was there
  sweep(context);
  EXPECT_TRUE(fs::exists(container_path(paths(), a_))) << "it may be in the making";
  EXPECT_TRUE(fs::exists(marks / b_)) << "so may this one";
  auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(container_path(paths(), a_), long_ago);
  fs::last_write_time(marks / b_, long_ago);
  sweep(context);
  EXPECT_FALSE(fs::exists(container_path(paths(), a_)));
  EXPECT_TRUE(fs::is_empty(marks));
}

TEST_F(ContainerDirectoryTest, lists_what_looks_like_an_id) {
  EXPECT_TRUE(container_ids(root())->empty());
  auto a = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  fs::create_directories(root_ / "containers/lost+found");
  EXPECT_THAT(*container_ids(root()), testing::ElementsAre(a_));
}

TEST_F(ContainerDirectoryTest, is_shown_as_running_exited_or_dead) {
  NullLog log;
  Context context{paths(), Identity::root, {}, log};
  auto states = [&](Which which) {
    std::vector<std::string> texts;
    auto list = list_containers(context, which);
    for (const auto& summary : *list) {
      texts.push_back(summary.name + " " + std::string(container_state_name(summary.state)));
    }
    return texts;
  };
  auto a = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  ASSERT_TRUE(a->write(record(a_, "aa")).ok());
  auto b = ContainerDirectory::create(paths(), b_, Lifetime::kept);
  ASSERT_TRUE(b->write(record(b_, "bb")).ok());
  ASSERT_TRUE(b->append(record::Exit{0, 5}).ok());
  EXPECT_THAT(states(Which::all), testing::ElementsAre("bb exited", "aa running"));
  EXPECT_THAT(states(Which::running), testing::ElementsAre("aa running"));
  { ContainerDirectory gone = std::move(*a); }
  EXPECT_THAT(states(Which::all), testing::ElementsAre("bb exited", "aa dead"));
  EXPECT_EQ(get_container(context, "bb")->id, b_);
  EXPECT_EQ(get_container(context, "bbbb")->id, b_);
  EXPECT_EQ(to_line(get_container(context, "cc").error()),
            "no such container: cc; try: berth ps --all");
  EXPECT_FALSE(get_container(context, "../names").ok());
}

TEST_F(ContainerDirectoryTest, the_last_line_of_each_kind_counts) {
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  record::Container first = record(a_, "ab");
  first.watched = true;
  ASSERT_TRUE(made->write(first).ok());
  ASSERT_TRUE(made->append(record::Start{7, 41, 5, "boot", 0}).ok());
  ASSERT_TRUE(made->append(record::Pause{true}).ok());
  auto files = read_container(paths(), a_);
  ASSERT_TRUE(files->start);
  EXPECT_EQ(files->start->pid, 41);
  EXPECT_TRUE(files->paused);
  ASSERT_TRUE(made->append(record::Exit{137, 9, true, true, {}}).ok());
  ASSERT_TRUE(made->append(record::Name{"other"}).ok());
  files = read_container(paths(), a_);
  ASSERT_TRUE(files->exit);
  EXPECT_TRUE(files->exit->restarting && files->exit->oom_killed);
  EXPECT_FALSE(files->paused);
  EXPECT_EQ(files->record->name, "other");
  ASSERT_TRUE(made->append(record::Start{10, 42, 6, "boot", 1}).ok());
  files = read_container(paths(), a_);
  EXPECT_FALSE(files->exit);
  EXPECT_EQ(files->start->restarts, 1);
}

TEST_F(ContainerDirectoryTest, nothing_of_another_boot_is_believed_to_run) {
  NullLog log;
  Context context{paths(), Identity::root, {}, log};
  auto made = ContainerDirectory::create(paths(), a_, Lifetime::kept);
  record::Container first = record(a_, "ab");
  first.watched = true;
  ASSERT_TRUE(made->write(first).ok());
  ASSERT_TRUE(made->reserve("ab").ok());
  EXPECT_EQ(get_container(context, "ab")->state, ContainerState::created);
  // Process 1 is alive, whatever the boot.
  ASSERT_TRUE(made->append(record::Start{7, 1, 0, "an earlier one", 0}).ok());
  { ContainerDirectory gone = std::move(*made); }
  EXPECT_EQ(get_container(context, "ab")->state, ContainerState::dead);
}

TEST(ParseReport, tells_a_command_that_is_missing_from_one_that_cannot_run) {
  auto missing = parse_report(
      R"({"kind":"not_found","errno":2,"what":"run 'x'","hint":"","context":[],"stage":"command"})");
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->status(), 127);
  auto denied = parse_report(R"({"kind":"denied","what":"run 'x'","stage":"command"})");
  EXPECT_EQ(denied->status(), 126);
  auto engine = parse_report(R"({"kind":"io","what":"mount","context":["cannot a"]})");
  EXPECT_EQ(engine->status(), 125);
  EXPECT_EQ(to_line(engine->error), "cannot a: mount");
  EXPECT_FALSE(parse_report("half {").ok());
}

}  // namespace
}  // namespace berth::engine
