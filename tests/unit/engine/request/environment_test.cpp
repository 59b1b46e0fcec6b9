// SPDX-License-Identifier: Apache-2.0
#include "engine/request/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;
using Strings = std::vector<std::string>;

constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Strings environment(const Strings& image, const Strings& request, const Strings& caller = {},
                    bool terminal = false) {
  Environment callers(caller);
  auto made = make_environment({image, request, callers, "box", "/home/ada", terminal});
  EXPECT_TRUE(made.ok());
  return made.ok() ? *made : Strings{};
}

TEST(MakeEnvironment, has_a_path_a_host_name_and_a_home_by_itself) {
  EXPECT_THAT(environment({}, {}), ElementsAre(kPath, "HOSTNAME=box", "HOME=/home/ada"));
}

TEST(MakeEnvironment, names_a_terminal_only_where_there_is_one) {
  EXPECT_THAT(environment({}, {}, {}, true), Contains("TERM=xterm"));
  EXPECT_THAT(environment({}, {}), Not(Contains(StartsWith("TERM="))));
}

TEST(MakeEnvironment, lets_the_request_win_over_the_image_and_the_image_over_defaults) {
  EXPECT_THAT(environment({"PATH=/image", "A=1", "B=2"}, {"B=3", "B=4", "HOME=/elsewhere"}),
              ElementsAre("PATH=/image", "HOSTNAME=box", "A=1", "B=4", "HOME=/elsewhere"));
}

TEST(MakeEnvironment, takes_the_callers_value_of_a_bare_name_or_removes_the_variable) {
  EXPECT_THAT(environment({"A=1", "B=2"}, {"A", "B", "NONE"}, {"A=mine", "AA=no"}),
              ElementsAre(kPath, "HOSTNAME=box", "A=mine", "HOME=/home/ada"));
}

TEST(MakeEnvironment, keeps_an_equals_sign_in_a_value) {
  EXPECT_THAT(environment({}, {"OPTS=a=b"}), Contains("OPTS=a=b"));
}

TEST(MakeEnvironment, passes_nothing_on_that_is_no_assignment) {
  EXPECT_THAT(environment({"=x", "lonely"}, {}),
              ElementsAre(kPath, "HOSTNAME=box", "HOME=/home/ada"));
}

TEST(MakeEnvironment, refuses_a_variable_without_a_name) {
  Environment none;
  Strings request = {"=x"};
  auto made = make_environment({{}, request, none, "box", "/", false});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(to_line(made.error()), "environment variable '=x': expected NAME=value");
}

TEST(ParseEnvFile, keeps_assignments_and_bare_names) {
  auto entries = parse_env_file("# a comment\n\nA=1\n  B= 2 \r\nC\nD=#x\n", "env");
  ASSERT_TRUE(entries.ok());
  EXPECT_THAT(*entries, ElementsAre("A=1", "B= 2 ", "C", "D=#x"));
}

TEST(ParseEnvFile, names_the_line_that_it_refuses) {
  auto entries = parse_env_file("A=1\nno good=2\n", "my.env");
  ASSERT_FALSE(entries.ok());
  EXPECT_EQ(to_line(entries.error()), "my.env: line 2: 'no good' is not a variable name");
  EXPECT_FALSE(parse_env_file("=1", "env").ok());
}

}  // namespace
}  // namespace berth::engine
