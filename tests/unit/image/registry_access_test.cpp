// SPDX-License-Identifier: Apache-2.0
#include "image/registry_access.hpp"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

RegistryRule with_prefix(const std::string& prefix) {
  RegistryRule rule;
  rule.prefix = prefix;
  return rule;
}

std::string prefix_for(const std::string& name) {
  const std::vector<RegistryRule> rules = {
      with_prefix("docker.io"), with_prefix("docker.io/library"), with_prefix("*.example.org"),
      with_prefix("a.example.org:5000"), with_prefix("docker.io/library")};
  const RegistryRule* rule = rule_of(rules, name);
  return rule == nullptr ? "" : rule->prefix;
}

TEST(RegistryRule, the_longest_prefix_that_ends_at_a_part_of_the_name_counts) {
  EXPECT_EQ(prefix_for("docker.io/library/debian"), "docker.io/library");
  EXPECT_EQ(prefix_for("docker.io/libraryx/debian"), "docker.io");
  EXPECT_EQ(prefix_for("docker.iox/library/debian"), "");
  EXPECT_EQ(prefix_for("docker.io:5000/x"), "");
  EXPECT_EQ(prefix_for("b.example.org/x"), "*.example.org");
  EXPECT_EQ(prefix_for("a.b.example.org:1/x"), "*.example.org");
  EXPECT_EQ(prefix_for("example.org/x"), "");
  EXPECT_EQ(prefix_for("evilexample.org/x"), "");
  EXPECT_EQ(prefix_for("a.example.org:5000/x"), "a.example.org:5000");
  EXPECT_EQ(prefix_for(""), "");
}

TEST(RegistryRule, a_location_stands_for_the_prefix) {
  RegistryRule rule = with_prefix("docker.io/library");
  EXPECT_EQ(relocated("docker.io/library/debian", rule, "m:5000/hub"), "m:5000/hub/debian");
  EXPECT_EQ(relocated("docker.io/library/debian", rule, ""), "docker.io/library/debian");
  EXPECT_EQ(relocated("quay.io/x", rule, "m"), "quay.io/x");
  EXPECT_EQ(relocated("a.example.org:1/x", with_prefix("*.example.org"), "m/y"), "m/y:1/x");
  RegistryRule by_location;
  by_location.location = "lab.example.org";
  EXPECT_NE(rule_of({by_location}, "lab.example.org/x"), nullptr);
}

}  // namespace
}  // namespace berth::image
