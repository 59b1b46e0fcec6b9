// SPDX-License-Identifier: Apache-2.0
#include "engine/site/environment_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Warnings final : public Log {
 public:
  void debug(const std::string&) override {}
  void warn(const std::string& text) override { texts.push_back(text); }
  std::vector<std::string> texts;
};

edf::Definition with_image(const std::string& image) {
  edf::Definition definition;
  definition.image = edf::Text{image, "a.toml:1"};
  return definition;
}

std::string image(const std::string& text) {
  auto out = image_of(with_image(text));
  return out.ok() ? *out : "error: " + to_line(out.error());
}

/// What `add_definition` makes of a request with a command, or its error.
std::string added(const edf::Definition& definition, RunRequest& request) {
  Warnings log;
  if (request.command.empty()) request.command = {"true"};
  auto done = add_definition(definition, "/home/me", log, request);
  return done.ok() ? "" : to_line(done.error());
}

std::string mount_fault(const std::string& text) {
  edf::Definition definition;
  definition.mounts = {{text, "a.toml:2"}};
  RunRequest request;
  return added(definition, request);
}

TEST(EnvironmentFile, names_images_as_enroot_does) {
  EXPECT_EQ(image("library/ubuntu:24.04"), "library/ubuntu:24.04");
  EXPECT_EQ(image("docker.io#library/ubuntu:24.04"), "docker.io/library/ubuntu:24.04");
  EXPECT_EQ(image("nvcr.io#nvidia/pytorch:22.12-py3"), "nvcr.io/nvidia/pytorch:22.12-py3");
  EXPECT_EQ(image("localhost:5000#a/b"), "localhost:5000/a/b");
  EXPECT_EQ(image(""), "");
  auto none = image_of(edf::Definition());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, "");
}

TEST(EnvironmentFile, refuses_images_that_would_mean_others) {
  EXPECT_THAT(image("quay#me/x"),
              HasSubstr("a.toml:1: image 'quay#me/x': 'quay' is not a registry"));
  EXPECT_THAT(image("me@nvcr.io#nvidia/x"),
              HasSubstr("contains a user name for the registry; try: berth login"));
  EXPECT_THAT(image("Ubuntu/x y"), HasSubstr("error: a.toml:1: "));
  EXPECT_THAT(image("/no/such.sqsh"), HasSubstr("error: a.toml:1: cannot use '/no/such.sqsh'"));
}

TEST(EnvironmentFile, adds_what_no_flag_has_said) {
  edf::Definition definition;
  definition.workdir = edf::Text{"./src", "a.toml:1"};
  definition.writable = false;
  definition.mounts = {{"/a:/one:ro+rslave", "a.toml:2"},
                       {"./data:/two", "a.toml:3"},
                       {"/b:/one", "a.toml:4"},
                       {"/c:/flag", "a.toml:5"}};
  definition.devices = {{"nvidia.com/gpu=0", "a.toml:6"}, {"nvidia.com/gpu=0", "a.toml:6"}};
  definition.annotations = {{"a", {"file", "a.toml:7"}}, {"b", {"file", "a.toml:8"}}};
  RunRequest request;
  request.volumes = {{.source = "/mine", .destination = "/flag"}};
  request.annotations = {{"a", "flag"}};
  ASSERT_EQ(added(definition, request), "");
  EXPECT_EQ(request.entrypoint, "");
  EXPECT_EQ(request.workdir, "/home/me/src");
  EXPECT_TRUE(request.read_only);
  ASSERT_EQ(request.volumes.size(), 3U);
  EXPECT_EQ(request.volumes[0].source, "/mine");
  EXPECT_EQ(request.volumes[1],
            (Volume{.source = "/home/me/data", .destination = "/two", .must_exist = true}));
  EXPECT_EQ(request.volumes[2].source, "/b");
  EXPECT_FALSE(request.volumes[2].read_only);
  EXPECT_THAT(request.devices, ElementsAre("nvidia.com/gpu=0"));
  EXPECT_EQ(request.annotations.at("a"), "flag");
  EXPECT_EQ(request.annotations.at("b"), "file");
}

TEST(EnvironmentFile, reads_the_flags_of_a_mount) {
  edf::Definition definition;
  definition.mounts = {{"/a:/one:ro+rslave", "a.toml:2"}};
  RunRequest request;
  ASSERT_EQ(added(definition, request), "");
  EXPECT_TRUE(request.volumes.at(0).read_only);
  EXPECT_EQ(request.volumes.at(0).propagation, "rslave");
  EXPECT_THAT(mount_fault("/a"), HasSubstr("a.toml:2: mount '/a': expected SOURCE:TARGET"));
  EXPECT_THAT(mount_fault("data:/data"),
              HasSubstr("a.toml:2: mount 'data:/data': the source is no"));
  EXPECT_THAT(mount_fault("/a:data"), HasSubstr("the path is not absolute"));
  EXPECT_THAT(mount_fault("/a:/b:rx"), HasSubstr("unknown option 'rx'"));
  EXPECT_THAT(mount_fault("/a:/b:ro+sqsh"), HasSubstr("unknown option 'sqsh'"));
  EXPECT_THAT(mount_fault("/no/such.sqsh:/b:sqsh"),
              HasSubstr("a.toml:2: cannot use '/no/such.sqsh'"));
}

TEST(EnvironmentFile, leaves_what_flags_have_said) {
  edf::Definition definition;
  definition.workdir = edf::Text{"/file", "a.toml:1"};
  definition.entrypoint = true;
  RunRequest request;
  request.workdir = "/flag";
  ASSERT_EQ(added(definition, request), "");
  EXPECT_EQ(request.workdir, "/flag");
  EXPECT_EQ(request.entrypoint, std::nullopt);
  EXPECT_FALSE(request.read_only);
}

TEST(EnvironmentFile, runs_no_entrypoint_unasked) {
  Warnings log;
  RunRequest request;
  auto done = add_definition(edf::Definition(), "/", log, request);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(to_line(done.error()), HasSubstr("try: a command, or 'entrypoint = true'"));
}

TEST(EnvironmentFile, says_that_hooks_are_not_there) {
  edf::Definition definition;
  definition.annotations = {{"com.hooks.cxi.enabled", {"true", "a.toml:1"}},
                            {"com.hooks.ssh.enabled", {"false", "a.toml:2"}},
                            {"mine", {"true", "a.toml:3"}}};
  Warnings log;
  RunRequest request;
  request.command = {"true"};
  ASSERT_TRUE(add_definition(definition, "/", log, request).ok());
  EXPECT_THAT(log.texts,
              ElementsAre("no hook is run for com.hooks.cxi.enabled: they are for CSCS's "
                          "engine, ignoring"));
  EXPECT_EQ(request.annotations.size(), 3U);
}

TEST(EnvironmentFile, asks_the_image_before_the_caller_for_variables) {
  Environment caller({"PATH=/host", "NODE=n1"});
  auto entries = expand_variables(caller, {"PATH=/image"},
                                  {{"A", {"file", "a.toml:2"}},
                                   {"GONE", {"", "a.toml:3"}},
                                   {"NOTHING", {"${NONE:-}", "a.toml:4"}},
                                   {"PATH", {"${PATH}:/custom/bin", "a.toml:5"}},
                                   {"WHERE", {"${NODE}", "a.toml:6"}}});
  ASSERT_TRUE(entries.ok());
  EXPECT_THAT(*entries,
              ElementsAre("A=file", "GONE", "NOTHING", "PATH=/image:/custom/bin", "WHERE=n1"));
}

TEST(EnvironmentFile, names_the_place_of_a_variable_that_nobody_has) {
  auto done = expand_variables(Environment(), {}, {{"A", {"${NONE}", "a.toml:2"}}});
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(to_line(done.error()), HasSubstr("a.toml:2: the variable 'NONE' is not set"));
}

}  // namespace
}  // namespace berth::engine
