// SPDX-License-Identifier: Apache-2.0
#include "image/foreign.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace berth::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Files final : public ForeignFiles {
 public:
  explicit Files(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  Result<std::optional<std::string>> read(const std::string& path, size_t) const override {
    auto found = files_.find(path);
    return found == files_.end() ? std::nullopt : std::optional(found->second);
  }
  Result<bool> exists(const std::string& path) const override {
    auto found = files_.lower_bound(path);
    return found != files_.end() && found->first.starts_with(path);
  }

 private:
  std::map<std::string, std::string> files_;
};

oci::ContainerDefaults describe(std::map<std::string, std::string> files) {
  return *describe_foreign(Files(std::move(files)));
}

TEST(ForeignImage, runs_a_shell_where_nothing_is_said) {
  auto says = describe({{"/bin/sh", ""}});
  EXPECT_THAT(says.cmd, ElementsAre("/bin/sh"));
  EXPECT_TRUE(says.entrypoint.empty());
  EXPECT_TRUE(says.env.empty());
}

TEST(ForeignImage, takes_lines_of_an_environment_and_ignores_what_is_none) {
  auto says =
      describe({{"/etc/environment", "A=1\n# B=2\nexport C=\"x y\"\n no=\nD='\n=x\n1 2=3\nE=a=b\n" +
                                         std::string("F=\0x\n", 5)}});
  EXPECT_THAT(says.env, ElementsAre("A=1", "C=x y", "no=", "D='", "E=a=b"));
}

TEST(ForeignImage, starts_enroots_script) {
  auto says = describe({{"/etc/rc", "exec \"$@\"\n"}});
  EXPECT_THAT(says.entrypoint, ElementsAre("/bin/sh", "/etc/rc"));
  EXPECT_TRUE(says.cmd.empty());
}

TEST(ForeignImage, starts_the_script_of_a_sif_in_its_environment) {
  auto says = describe({{"/.singularity.d/env/90.sh", ""},
                        {"/.singularity.d/labels.json", R"({"a":"b","c":1})"},
                        {"/.singularity.d/runscript", ""},
                        {"/etc/rc", ""}});
  EXPECT_THAT(says.cmd, ElementsAre("/.singularity.d/runscript"));
  ASSERT_EQ(says.entrypoint.size(), 4u);
  EXPECT_THAT(says.entrypoint[2], HasSubstr("exec \"$@\""));
  EXPECT_EQ(says.labels, (std::map<std::string, std::string>{{"a", "b"}}));
}

TEST(ForeignImage, survives_labels_that_are_none) {
  EXPECT_TRUE(describe({{"/.singularity.d/labels.json", "[1"}}).labels.empty());
}

TEST(EnrootFiles, quote_every_word_for_the_shell) {
  oci::ContainerDefaults config;
  config.entrypoint = {"/bin/echo", "it's; $x"};
  config.cmd = {"`id`"};
  config.working_dir = "/a b";
  config.env = {"A=1", "B=x\ny"};
  EnrootFiles files = make_enroot_files(config);
  EXPECT_EQ(files.environment, "A=1\n");
  EXPECT_THAT(files.left_out, ElementsAre("B"));
  EXPECT_THAT(files.rc, HasSubstr("cd '/a b'"));
  EXPECT_THAT(files.rc, HasSubstr("exec '/bin/echo' 'it'\\''s; $x' \"$@\"\n"));
  EXPECT_THAT(files.rc, HasSubstr("exec '/bin/echo' 'it'\\''s; $x' '`id`'\n"));
}

}  // namespace
}  // namespace berth::image
