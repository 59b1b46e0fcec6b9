// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/container_words.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "engine/container/list.hpp"

using namespace berth;
using namespace berth::cli;

namespace {

const Now kNow{std::chrono::seconds(1'000'000)};

engine::ListedContainer container(engine::ContainerState state) {
  engine::ListedContainer listed;
  listed.summary.state = state;
  listed.summary.created_at = 1'000'000 - 300;
  listed.summary.created_ns = (1'000'000 - 300) * int64_t{1'000'000'000};
  listed.summary.started_ns = listed.summary.created_ns;
  return listed;
}

TEST(StatusWords, are_those_of_docker) {
  auto running = container(engine::ContainerState::running);
  EXPECT_EQ(status_words(running, kNow), "Up 5 minutes");
  running.health = "healthy";
  EXPECT_EQ(status_words(running, kNow), "Up 5 minutes (healthy)");
  running.health = "starting";
  EXPECT_EQ(status_words(running, kNow), "Up 5 minutes (health: starting)");
  auto exited = container(engine::ContainerState::exited);
  exited.summary.exit_code = 137;
  exited.summary.finished_at = 1'000'000 - 7200;
  EXPECT_EQ(status_words(exited, kNow), "Exited (137) 2 hours ago");
  EXPECT_EQ(status_words(container(engine::ContainerState::paused), kNow), "Up 5 minutes (Paused)");
  exited.summary.state = engine::ContainerState::restarting;
  EXPECT_EQ(status_words(exited, kNow), "Restarting (137) 2 hours ago");
  EXPECT_EQ(status_words(container(engine::ContainerState::created), kNow), "Created");
  EXPECT_EQ(status_words(container(engine::ContainerState::dead), kNow), "Dead");
}

TEST(CommandWords, are_quoted_and_cut_as_docker_does) {
  EXPECT_EQ(command_words({"sleep", "600"}, Text::shortened), "\"sleep 600\"");
  EXPECT_EQ(command_words({"echo", "hello world foo bar baz quux"}, Text::shortened),
            "\"echo 'hello world f…\"");
  EXPECT_EQ(command_words({"echo", "hello world"}, Text::whole), "\"echo 'hello world'\"");
  EXPECT_EQ(command_words({"sh", "-c", "a\nb\"\x1b"}, Text::whole), R"("sh -c a\nb\"\x1b")");
  EXPECT_EQ(command_words({}, Text::whole), "\"\"");
}

TEST(PortWords, show_published_and_exposed_ports_in_the_order_of_docker) {
  EXPECT_EQ(port_words({}), "");
  EXPECT_EQ(port_words({{"", 0, 443, "tcp"}, {"0.0.0.0", 8080, 80, "tcp"}}),
            "443/tcp, 0.0.0.0:8080->80/tcp");
  EXPECT_EQ(port_words({{"::", 8080, 80, "tcp"}, {"0.0.0.0", 8080, 80, "tcp"}}),
            "0.0.0.0:8080->80/tcp, [::]:8080->80/tcp");
}

TEST(PortWords, join_neighbours_that_have_one_number_on_both_sides) {
  EXPECT_EQ(port_words({{"", 0, 8002, "tcp"}, {"", 0, 8000, "tcp"}, {"", 0, 8001, "tcp"}}),
            "8000-8002/tcp");
  EXPECT_EQ(
      port_words({{"0.0.0.0", 81, 81, "udp"}, {"0.0.0.0", 80, 80, "udp"}, {"", 0, 82, "tcp"}}),
      "0.0.0.0:80-81->80-81/udp, 82/tcp");
  EXPECT_EQ(port_words({{"0.0.0.0", 9000, 80, "tcp"}, {"0.0.0.0", 9001, 81, "tcp"}}),
            "0.0.0.0:9000->80/tcp, 0.0.0.0:9001->81/tcp");
  EXPECT_EQ(port_words({{"", 0, 80, "tcp"}, {"", 0, 82, "tcp"}, {"", 0, 83, "tcp"}}),
            "80/tcp, 82-83/tcp");
}

TEST(MountWords, name_volumes_and_sources) {
  std::vector<engine::MountSummary> mounts = {{"volume", "data", "", "/data"},
                                              {"bind", "", "/srv/a/long/directory", "/d"}};
  EXPECT_EQ(mount_words(mounts, Text::shortened), "data,/srv/a/long/di…");
  EXPECT_EQ(mount_words(mounts, Text::whole), "data,/srv/a/long/directory");
}

TEST(ZonedTime, is_written_as_go_does) {
  ::setenv("TZ", "UTC0", 1);
  ::tzset();
  EXPECT_EQ(zoned_time(1'700'000'000), "2023-11-14 22:13:20 +0000 UTC");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(SizeWords, tell_own_and_all_bytes) {
  EXPECT_EQ(size_words({2, 1'982'305}), "2B (virtual 1.98MB)");
}

}  // namespace
