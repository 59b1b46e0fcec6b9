// SPDX-License-Identifier: Apache-2.0
// Which containers and volumes are removed; images are in the integration tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/time.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/state/directory.hpp"
#include "engine/system/disk.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int64_t kPruneTime = int64_t{1'700'000'000} * kNanosecondsPerSecond;

class PruneTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  /// As `create` leaves it; whoever keeps what is returned owns it, as a container that runs.
  ContainerDirectory make_container(char digit, int64_t created_ns) {
    record::Container record;
    record.id = std::string(64, digit);
    record.name = std::string("name-") + digit;
    record.image = "busybox";
    record.command = {"true"};
    record.created_ns = created_ns;
    record.prepared = true;
    auto made = ContainerDirectory::create(context_.paths, record.id, Lifetime::kept);
    EXPECT_TRUE(made.ok()) << to_line(made.error());
    EXPECT_TRUE(made->reserve(record.name).ok());
    EXPECT_TRUE(made->write(record).ok());
    return std::move(*made);
  }
  void make_volume_of(const std::string& name, std::map<std::string, std::string> labels,
                      size_t bytes) {
    VolumeRecord wish;
    wish.name = name;
    wish.labels = std::move(labels);
    auto made = make_volume(context_, wish);
    ASSERT_TRUE(made.ok()) << to_line(made.error());
    std::ofstream(volume_data(root_, name) + "/file") << std::string(bytes, 'x');
  }
  static PruneOptions options(std::vector<Filter> filters) {
    PruneOptions made;
    made.filters = Filters(std::move(filters));
    made.now = kPruneTime;
    return made;
  }

  fs::path root_ = fs::path(testing::TempDir()) / ("prune-" + std::to_string(::getpid()));
  NullLog log_;
  Context context_{{root_, root_.string() + "/state", "/none", "/"}, Identity::root, {}, log_};
};

TEST_F(PruneTest, leaves_a_container_that_runs) {
  { ContainerDirectory stopped = make_container('a', kPruneTime); }
  ContainerDirectory running = make_container('b', kPruneTime);
  record::Start start{kPruneTime, ::getpid(), 1, "boot", 0};
  ASSERT_TRUE(append_to_record(context_.paths, running.id(), json::write(start)).ok());
  auto pruned = prune_containers(context_, options({}));
  ASSERT_TRUE(pruned.ok()) << to_line(pruned.error());
  EXPECT_THAT(pruned->names, ElementsAre(std::string(64, 'a')));
  EXPECT_THAT(*container_ids(root_), ElementsAre(std::string(64, 'b')));
  EXPECT_EQ(*find_name(root_, "name-a"), std::nullopt);
}

TEST_F(PruneTest, takes_containers_that_are_older_than_until) {
  { ContainerDirectory old = make_container('a', kPruneTime - 7200 * kNanosecondsPerSecond); }
  { ContainerDirectory young = make_container('b', kPruneTime - 60 * kNanosecondsPerSecond); }
  auto pruned = prune_containers(context_, options({{"until", "1h"}}));
  ASSERT_TRUE(pruned.ok()) << to_line(pruned.error());
  EXPECT_THAT(pruned->names, ElementsAre(std::string(64, 'a')));
}

TEST_F(PruneTest, asks_all_labels_of_a_volume_and_spares_the_unwanted) {
  make_volume_of("plain", {}, 1);
  make_volume_of("kept", {{"keep", "yes"}, {"team", "a"}}, 10);
  make_volume_of("other", {{"team", "a"}}, 100);
  auto pruned = prune_volumes(context_, options({{"label", "team=a"}, {"label!", "keep"}}));
  ASSERT_TRUE(pruned.ok()) << to_line(pruned.error());
  EXPECT_THAT(pruned->names, ElementsAre("other"));
  EXPECT_EQ(pruned->bytes, 100u);
  // A value that differs is not the unwanted one.
  pruned = prune_volumes(context_, options({{"label!", "keep=no"}}));
  EXPECT_THAT(pruned->names, UnorderedElementsAre("kept", "plain"));
  EXPECT_EQ(pruned->bytes, 11u);
}

TEST_F(PruneTest, takes_no_volume_while_a_container_is_being_made) {
  make_volume_of("data", {}, 1);
  {
    auto draft = ContainerDirectory::create(context_.paths, std::string(64, 'a'), Lifetime::kept);
    ASSERT_TRUE(draft.ok());
    EXPECT_THAT(prune_volumes(context_, options({}))->names, IsEmpty());
    ASSERT_TRUE(draft->remove().ok());
  }
  EXPECT_THAT(prune_volumes(context_, options({}))->names, ElementsAre("data"));
}

TEST_F(PruneTest, knows_its_filters) {
  EXPECT_EQ(prune_volumes(context_, options({{"until", "1h"}})).error().kind, Kind::usage);
  EXPECT_EQ(prune_containers(context_, options({{"lable", "a"}})).error().kind, Kind::usage);
  Error moment = prune_containers(context_, options({{"until", "yesterday"}})).error();
  EXPECT_EQ(moment.kind, Kind::usage);
  EXPECT_NE(moment.what.find("until=yesterday"), std::string::npos) << moment.what;
}

}  // namespace
}  // namespace berth::engine
