// SPDX-License-Identifier: Apache-2.0
#include "slurm/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string refusal(const Result<void>& taken) {
  return taken.ok() ? "taken" : to_line(taken.error());
}

std::string refusal_of(Key key, std::string_view text) {
  Asked asked;
  return refusal(asked.take(key, text));
}

Result<void> take_from(Asked& asked, const std::map<std::string, std::string>& variables) {
  return asked.take_variables([&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(SlurmOptions, an_image_or_a_name_wants_a_container) {
  Asked asked;
  EXPECT_FALSE(asked.wants_container());
  ASSERT_TRUE(asked.take(Key::readonly, "").ok());
  ASSERT_TRUE(asked.take(Key::mounts, "/data").ok());
  EXPECT_FALSE(asked.wants_container());
  EXPECT_THAT(asked.without_container(), ElementsAre("--container-mounts", "--container-readonly"));
  ASSERT_TRUE(asked.take(Key::image, "debian").ok());
  EXPECT_TRUE(asked.wants_container());
  EXPECT_THAT(asked.without_container(), IsEmpty());
}

TEST(SlurmOptions, an_environment_file_wants_a_container_and_has_no_variable) {
  Asked asked;
  ASSERT_TRUE(take_from(asked, {{"PYXIS_ENVIRONMENT", "other"}}).ok());
  EXPECT_FALSE(asked.wants_container());
  ASSERT_TRUE(asked.take(Key::environment_file, "pytorch").ok());
  EXPECT_TRUE(asked.wants_container());
  EXPECT_THAT(asked.words(), ElementsAre("--environment=pytorch"));
  EXPECT_EQ(refusal_of(Key::environment_file, ""), "--environment: argument required");
}

TEST(SlurmOptions, an_option_that_needs_a_value_is_refused_without) {
  EXPECT_EQ(refusal_of(Key::image, ""), "--container-image: argument required");
  EXPECT_EQ(refusal_of(Key::workdir, ""), "--container-workdir: argument required");
  EXPECT_EQ(refusal_of(Key::image, "a\nb"), "--container-image: a line break in 'a\\nb'");
}

TEST(SlurmOptions, the_same_twice_is_once_and_another_is_refused) {
  Asked asked;
  ASSERT_TRUE(asked.take(Key::image, "debian").ok());
  EXPECT_EQ(refusal(asked.take(Key::image, "debian")), "taken");
  EXPECT_EQ(refusal(asked.take(Key::image, "alpine")),
            "--container-image specified multiple times; try: once, with commas where it takes "
            "several");
}

TEST(SlurmOptions, an_option_and_its_opposite_are_refused) {
  Asked asked;
  ASSERT_TRUE(asked.take(Key::mount_home, "").ok());
  EXPECT_EQ(refusal(asked.take(Key::no_mount_home, "")),
            "both --container-mount-home and --no-container-mount-home were specified");
  Asked other;
  ASSERT_TRUE(other.take(Key::readonly, "").ok());
  EXPECT_EQ(refusal(other.take(Key::writable, "")),
            "both --container-readonly and --container-writable were specified");
}

TEST(SlurmOptions, names_say_how_they_are_used) {
  EXPECT_EQ(parse_name("web")->use, NameUse::join_or_reuse);
  EXPECT_EQ(parse_name("web:auto")->use, NameUse::join_or_reuse);
  EXPECT_EQ(parse_name("web:create")->use, NameUse::create);
  EXPECT_EQ(parse_name("web:exec")->use, NameUse::exec);
  EXPECT_EQ(parse_name("web:no_exec")->use, NameUse::no_exec);
  EXPECT_EQ(parse_name("web:no_exec")->name, "web");
  EXPECT_EQ(refusal_of(Key::name, ":exec"), "--container-name: empty name");
  EXPECT_EQ(refusal_of(Key::name, "web:attach"),
            "--container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\", got "
            "'attach'");
  EXPECT_EQ(refusal_of(Key::name, "/tmp/x"),
            "--container-name: invalid name '/tmp/x'; try: letters, digits, '_', '.' and '-', no "
            "more than 200");
  EXPECT_NE(refusal_of(Key::name, std::string(300, 'a')), "taken");
}

TEST(SlurmOptions, namespaces_are_net_ipc_and_uts) {
  auto all = parse_unshare("net,ipc,uts");
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->net && all->ipc && all->uts);
  EXPECT_EQ(refusal_of(Key::unshare, "net,foo"),
            "--container-unshare: unknown namespace 'foo'; try: net, ipc, uts");
  EXPECT_EQ(refusal_of(Key::unshare, "net,"), "--container-unshare: empty namespace argument");
}

TEST(SlurmOptions, variables_stand_for_what_is_not_typed) {
  Asked asked;
  ASSERT_TRUE(asked.take(Key::workdir, "/typed").ok());
  ASSERT_TRUE(take_from(asked, {{"PYXIS_CONTAINER_IMAGE", "debian"},
                                {"PYXIS_CONTAINER_WORKDIR", "/variable"},
                                {"PYXIS_CONTAINER_MOUNT_HOME", "1"},
                                {"PYXIS_CONTAINER_WRITABLE", "0"},
                                {"PYXIS_CONTAINER_ENTRYPOINT_LOG", "0"}})
                  .ok());
  EXPECT_THAT(asked.words(), ElementsAre("--container-image=debian", "--container-workdir=/typed",
                                         "--container-mount-home", "--container-readonly"));
}

TEST(SlurmOptions, an_opposite_that_is_typed_counts_more_than_a_variable) {
  Asked asked;
  ASSERT_TRUE(asked.take(Key::no_mount_home, "").ok());
  ASSERT_TRUE(take_from(asked, {{"PYXIS_CONTAINER_MOUNT_HOME", "1"}}).ok());
  EXPECT_THAT(asked.words(), ElementsAre("--no-container-mount-home"));
}

TEST(SlurmOptions, a_variable_that_is_none_is_named) {
  Asked asked;
  EXPECT_EQ(refusal(take_from(asked, {{"PYXIS_CONTAINER_MOUNT_HOME", "maybe"}})),
            "invalid PYXIS_CONTAINER_MOUNT_HOME: expected 1 or 0, got 'maybe'");
  EXPECT_EQ(refusal(take_from(asked, {{"PYXIS_CONTAINER_NAME", ":x"}})),
            "invalid PYXIS_CONTAINER_NAME: --container-name: empty name");
}

TEST(SlurmOptions, words_are_read_back_as_they_were) {
  Asked asked;
  ASSERT_TRUE(asked.take(Key::image, "registry#image:1").ok());
  ASSERT_TRUE(asked.take(Key::env, "A,B").ok());
  ASSERT_TRUE(asked.take(Key::remap_root, "").ok());
  Asked again;
  for (const std::string& word : asked.words()) {
    std::string_view text = word;
    std::string_view name = text.substr(2, text.find('=') - 2);
    for (const Option& option : options()) {
      if (name != option.name) continue;
      size_t equals = text.find('=');
      ASSERT_TRUE(again.take(option.key, equals == text.npos ? "" : text.substr(equals + 1)).ok());
    }
  }
  EXPECT_EQ(again.words(), asked.words());
  EXPECT_THAT(again.environment(), ElementsAre("A", "B"));
}

}  // namespace
}  // namespace berth::slurm
