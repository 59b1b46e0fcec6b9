// SPDX-License-Identifier: Apache-2.0
#include "engine/site/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/request/environment.hpp"

namespace berth::engine {
namespace {

using testing::ElementsAre;

TEST(SiteRules, hooks_go_behind_those_that_are_there) {
  RunRequest request;
  request.site.hooks = {
      {.stage = "createRuntime", .path = "/b", .args = {"b"}, .env = {}, .timeout = 3}};
  oci::Spec spec;
  spec.hooks.create_runtime.push_back({.path = "/a"});
  add_site_hooks(request, spec);
  ASSERT_EQ(spec.hooks.create_runtime.size(), 2U);
  EXPECT_EQ(spec.hooks.create_runtime[1].path, "/b");
  EXPECT_EQ(spec.hooks.create_runtime[1].timeout, 3);
}

TEST(SiteRules, the_sites_selection_of_gpus_can_be_told_from_the_users) {
  RunRequest request;
  request.environment = {"NVIDIA_VISIBLE_DEVICES=0"};
  request.site.environment = {"A=1", "NVIDIA_VISIBLE_DEVICES=all"};
  EXPECT_THAT(environment_of(request),
              ElementsAre("A=1", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=0"));
  EXPECT_THAT(without_site_selection(request), ElementsAre("A=1", "NVIDIA_VISIBLE_DEVICES=0"));
}

}  // namespace
}  // namespace berth::engine
