// SPDX-License-Identifier: Apache-2.0
#include "engine/site/facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Silent final : public Log {
 public:
  void debug(const std::string&) override {}
  void warn(const std::string&) override {}
};

TEST(SiteFacts, are_what_was_asked_and_what_the_image_says) {
  RunRequest request;
  request.image = "busybox";
  request.labels = {{"a", "mine"}};
  request.environment = {"A=1", "B", "C"};
  request.inherited = {"B=2"};
  request.devices = {"nvidia.com/gpu=0"};
  request.command = {"/bin/echo", "x"};
  image::Image image;
  image.config.config.labels = {{"a", "image"}, {"b", "image"}};
  image.config.config.env = {"P=1"};
  Silent log;
  Context context{{}, Identity::mapped, Environment({"SLURM_JOB_PARTITION=gpu"}), log};
  auto facts = facts_of(context, request, &image, {});
  ASSERT_TRUE(facts.ok()) << to_line(facts.error());
  EXPECT_THAT(facts->image, ElementsAre("busybox", "docker.io/library/busybox:latest",
                                        "docker.io/library/busybox", "busybox:latest"));
  EXPECT_THAT(facts->labels, ElementsAre(testing::Pair("a", "mine"), testing::Pair("b", "image")));
  EXPECT_THAT(facts->user_env, ElementsAre("A=1", "B=2"));
  EXPECT_THAT(facts->image_env, ElementsAre("P=1"));
  EXPECT_TRUE(facts->gpus);
  EXPECT_EQ(facts->partition, "gpu");
  EXPECT_EQ(facts->command, "/bin/echo");
  EXPECT_THAT(facts->groups, IsEmpty());
}

}  // namespace
}  // namespace berth::engine
