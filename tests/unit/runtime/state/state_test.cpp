// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/state.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "json/value.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {
namespace {

class StateStore : public testing::Test {
 protected:
  void SetUp() override {
    auto tmp = sys::open_at(sys::cwd(), testing::TempDir(), O_PATH | O_DIRECTORY);
    ASSERT_TRUE(tmp.ok());
    auto made = sys::TempDir::make(*tmp, "berth-state-");
    ASSERT_TRUE(made.ok());
    base_ = std::move(made).value();
    path_ = testing::TempDir() + "/" + base_.name() + "/root";
  }
  Store open() {
    auto store = Store::open(path_);
    EXPECT_TRUE(store.ok()) << to_line(store.error());
    return std::move(store).value();
  }

  sys::TempDir base_;
  std::string path_;
};

State own_process() {
  State state;
  state.id = "c1";
  state.pid = ::getpid();
  state.start_time = *sys::process_start_time(state.pid);
  state.boot_id = *sys::boot_id();
  state.hooks.poststop = {{"/bin/true", {}, {}, {}}};
  return state;
}

TEST_F(StateStore, gives_back_what_was_written) {
  Store store = open();
  auto entry = store.claim("c1");
  ASSERT_TRUE(entry.ok());
  ASSERT_TRUE(entry->write(own_process()).ok());
  auto again = store.get("c1");
  ASSERT_TRUE(again.ok());
  auto state = again->read();
  ASSERT_TRUE(state.ok()) << to_line(state.error());
  EXPECT_EQ(state->pid, ::getpid());
  EXPECT_EQ(state->hooks.poststop.at(0).path, "/bin/true");
  EXPECT_EQ(*store.list(), (std::vector<std::string>{"c1"}));
  EXPECT_TRUE(store.remove("c1").ok());
  EXPECT_TRUE(store.list()->empty());
  EXPECT_TRUE(store.remove("c1").ok());
}

TEST_F(StateStore, may_be_written_again_longer_and_shorter) {
  Store store = open();
  auto entry = store.claim("c1");
  ASSERT_TRUE(entry.ok());
  for (size_t length : {10, 3000, 2}) {
    State state = own_process();
    state.bundle = std::string(length, 'b');
    ASSERT_TRUE(entry->write(state).ok());
    auto read = entry->read();
    ASSERT_TRUE(read.ok()) << to_line(read.error());
    EXPECT_EQ(read->bundle.size(), length);
  }
  EXPECT_EQ(sys::list_directory(entry->fd(), ".")->size(), 1u);
}

TEST_F(StateStore, refuses_ids_that_are_paths_or_taken) {
  Store store = open();
  for (const char* id : {"", ".", "..", "a/b", "a b", ".hidden", "a\n"}) {
    auto entry = store.claim(id);
    ASSERT_FALSE(entry.ok()) << id;
    EXPECT_EQ(entry.error().kind, Kind::usage) << id;
  }
  ASSERT_TRUE(store.claim("c1").ok());
  auto twice = store.claim("c1");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(to_line(twice.error()), "container 'c1' already exists; try: berth-runtime delete c1");
  auto absent = store.get("c2");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(to_line(absent.error()), "container 'c2' does not exist");
}

TEST_F(StateStore, tells_a_living_process_from_one_that_got_its_number) {
  Store store = open();
  auto entry = store.claim("c1");
  ASSERT_TRUE(entry.ok());
  State state = own_process();
  EXPECT_EQ(entry->status(state), Status::running);
  State reused = state;
  reused.start_time += 1;
  EXPECT_EQ(entry->status(reused), Status::stopped);
  State rebooted = state;
  rebooted.boot_id = "another";
  EXPECT_EQ(entry->status(rebooted), Status::stopped);
  ASSERT_TRUE(sys::write_file(entry->fd(), kStartSocket, "").ok());
  EXPECT_EQ(entry->status(state), Status::created);
}

TEST_F(StateStore, knows_whether_a_creator_is_still_at_work) {
  Store store = open();
  State state;
  {
    auto creator = store.claim("c1");
    ASSERT_TRUE(creator.ok());
    auto looker = store.get("c1");
    ASSERT_TRUE(looker.ok());
    EXPECT_EQ(looker->status(state), Status::creating);
  }
  auto later = store.get("c1");
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->status(state), Status::stopped);
}

TEST_F(StateStore, is_not_kept_where_others_may_write) {
  open();
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  auto store = Store::open(path_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().kind, Kind::denied);
  EXPECT_FALSE(Store::open("/").ok());
}

TEST(PublicState, has_the_members_of_the_spec) {
  State state;
  state.id = "c1";
  state.pid = 7;
  state.bundle = "/b";
  state.annotations = {{"k", "v"}};
  auto value = json::parse(public_state(state, "created"), "state");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value->find("id")->string(), "c1");
  EXPECT_EQ(*value->find("status")->string(), "created");
  EXPECT_EQ(*value->find("pid")->get_if<int64_t>(), 7);
  EXPECT_EQ(*value->find("bundle")->string(), "/b");
  EXPECT_EQ(*value->find("annotations")->find("k")->string(), "v");
  EXPECT_NE(value->find("ociVersion"), nullptr);
}

}  // namespace
}  // namespace berth::runtime
