// SPDX-License-Identifier: Apache-2.0
#include "edf/definition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::edf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string fault(std::string_view text) {
  auto read = parse(text, "a.toml");
  return read.ok() ? "" : to_line(read.error());
}

TEST(Definition, is_what_the_reference_shows) {
  auto read = parse(R"(base_environment = ["common_env", "ml_pytorch_env1"]
image = "nvcr.io#nvidia/pytorch:22.12-py3"
workdir = "/home/user/projects"
entrypoint = true
writable = false
mounts = [
  "${SCRATCH}:${SCRATCH}",
  "${SCRATCH}/data.sqsh:/data:sqsh",
]
devices = ["nvidia.com/gpu=all", "/dev/gdrdrv"]

[env]
MY_NODE = "${VAR_FROM_HOST}"
DEBUG = ""

[annotations.com.hooks.ssh]
authorize_ssh_key = "/key"
enabled = true
)",
                    "a.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(read->bases,
              ElementsAre(Text{"common_env", "a.toml:1"}, Text{"ml_pytorch_env1", "a.toml:1"}));
  EXPECT_EQ(read->image, (Text{"nvcr.io#nvidia/pytorch:22.12-py3", "a.toml:2"}));
  EXPECT_EQ(read->workdir, (Text{"/home/user/projects", "a.toml:3"}));
  EXPECT_EQ(read->entrypoint, true);
  EXPECT_EQ(read->writable, false);
  EXPECT_THAT(read->mounts, ElementsAre(Text{"${SCRATCH}:${SCRATCH}", "a.toml:7"},
                                        Text{"${SCRATCH}/data.sqsh:/data:sqsh", "a.toml:8"}));
  EXPECT_THAT(read->devices, ElementsAre(Text{"nvidia.com/gpu=all", "a.toml:10"},
                                         Text{"/dev/gdrdrv", "a.toml:10"}));
  EXPECT_EQ(read->variables.at("MY_NODE"), (Text{"${VAR_FROM_HOST}", "a.toml:13"}));
  EXPECT_EQ(read->variables.at("DEBUG").text, "");
  EXPECT_EQ(read->annotations.at("com.hooks.ssh.authorize_ssh_key"), (Text{"/key", "a.toml:17"}));
  EXPECT_EQ(read->annotations.at("com.hooks.ssh.enabled").text, "true");
}

TEST(Definition, has_annotations_with_dots) {
  auto read = parse("[annotations]\ncom.hooks.cxi.enabled = 'false'\n'a.b' = 1\n", "a.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(read->annotations.at("com.hooks.cxi.enabled"), (Text{"false", "a.toml:2"}));
  EXPECT_EQ(read->annotations.at("a.b"), (Text{"1", "a.toml:3"}));
}

TEST(Definition, of_an_empty_file_says_nothing) {
  auto read = parse("[env]\n[annotations]\n", "a.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(*read, Definition());
}

TEST(Definition, has_one_base_as_a_string) {
  auto read = parse("base_environment = 'common_env'\n", "a.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(read->bases, ElementsAre(Text{"common_env", "a.toml:1"}));
}

TEST(Definition, is_refused_with_the_line) {
  EXPECT_EQ(fault("image = 'a'\nmount = ['/a:/a']\n"),
            "a.toml:2: mount: unknown key; did you mean 'mounts'?");
  EXPECT_EQ(fault("\nbase_environment = 1\n"),
            "a.toml:2: base_environment: expected an array, got a number");
  EXPECT_EQ(fault("entrypoint = 'no'\n"),
            "a.toml:1: entrypoint: expected true or false, got a string");
  EXPECT_EQ(fault("mounts = ['/a:/a', 3]\n"),
            "a.toml:1: mounts[1]: expected a string, got a number");
  EXPECT_EQ(fault("env = 3\n"), "a.toml:1: env: expected an object, got a number");
  EXPECT_EQ(fault("[env]\nA = 'x'\nB = 3\n"), "a.toml:3: env.B: expected a string, got a number");
  EXPECT_EQ(fault("[env]\nA.B = 'x'\n"),
            "a.toml:2: env.A.B: not the name of an environment variable");
  EXPECT_EQ(fault("[env]\n'A=B' = 'x'\n"),
            "a.toml:2: env.A=B: not the name of an environment variable");
  EXPECT_EQ(fault("[annotations]\na = ['x']\n"),
            "a.toml:2: annotations.a: expected a string, got an array");
  EXPECT_THAT(fault("image = 'a'\nimage = 'b'\n"), HasSubstr("a.toml:2: "));
  EXPECT_THAT(fault("[env]\nMY_RUN = \"production\",\n"), HasSubstr("a.toml:2: "));
  EXPECT_THAT(fault(std::string(2 << 20, '#')), HasSubstr("a.toml: longer than 1 MiB"));
}

}  // namespace
}  // namespace berth::edf
