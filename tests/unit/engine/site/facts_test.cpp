// SPDX-License-Identifier: Apache-2.0
#include "engine/site/facts.hpp"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

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
  auto applies = [&](const policy::When& when) {
    policy::Rule rule;
    rule.when = {when};
    auto outcome = judge_request(context, {{"policy.toml:1", rule}}, request, &image);
    EXPECT_TRUE(outcome.ok()) << to_line(outcome.error());
    return outcome.ok() && outcome->verdicts[0].applied;
  };
  for (const char* spelling : {"busybox", "docker.io/library/busybox:latest",
                               "docker.io/library/busybox", "busybox:latest"}) {
    EXPECT_TRUE(applies({.image = {spelling}})) << spelling;
  }
  EXPECT_TRUE(applies({.label = {"a=mine"}}));
  EXPECT_FALSE(applies({.label = {"a=image"}}));
  EXPECT_TRUE(applies({.label = {"b=image"}}));
  EXPECT_TRUE(applies({.user_env = {"A=1"}}));
  EXPECT_TRUE(applies({.user_env = {"B=2"}}));
  EXPECT_FALSE(applies({.user_env = {"C"}}));
  EXPECT_TRUE(applies({.image_env = {"P=1"}}));
  EXPECT_TRUE(applies({.gpus = true}));
  EXPECT_TRUE(applies({.partition = {"gpu"}}));
  EXPECT_TRUE(applies({.command = {"/bin/echo"}}));
}

}  // namespace
}  // namespace berth::engine
