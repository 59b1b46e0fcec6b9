// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/requirement.hpp"

#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

Truth check(std::string_view text, const RequirementFacts& facts) {
  auto requirement = parse_requirement(text);
  EXPECT_TRUE(requirement.ok()) << to_line(requirement.error());
  return requirement.ok() ? evaluate(*requirement, facts) : Truth::unknown;
}

const RequirementFacts kFacts{
    .cuda = "12.8", .driver = "570.133.20", .arch = "9.0", .brand = "Tesla"};

TEST(Requirement, spaces_are_or_and_commas_are_and) {
  EXPECT_EQ(check("cuda>=12.4", kFacts), Truth::yes);
  EXPECT_EQ(check("cuda>=13.0", kFacts), Truth::no);
  EXPECT_EQ(check("cuda>=13.0 brand=tesla,driver>=470", kFacts), Truth::yes);
  EXPECT_EQ(check("cuda>=13.0 brand=tesla,driver>=580", kFacts), Truth::no);
  EXPECT_EQ(check("cuda>=12.4 brand=unknown,driver>=470,driver<471", kFacts), Truth::yes);
}

TEST(Requirement, knows_every_operator) {
  EXPECT_EQ(check("arch=9", kFacts), Truth::yes);
  EXPECT_EQ(check("arch!=9.0", kFacts), Truth::no);
  EXPECT_EQ(check("arch<9.0", kFacts), Truth::no);
  EXPECT_EQ(check("arch<=9.0", kFacts), Truth::yes);
  EXPECT_EQ(check("arch>8.9", kFacts), Truth::yes);
  EXPECT_EQ(check("brand!=tesla", kFacts), Truth::no);
}

TEST(Requirement, an_absent_fact_is_unknown_and_never_a_refusal) {
  RequirementFacts facts{.cuda = "12.2", .driver = {}, .arch = {}, .brand = {}};
  EXPECT_EQ(check("arch>=7.0", facts), Truth::unknown);
  EXPECT_EQ(check("cuda>=12.4 brand=tesla", facts), Truth::unknown);
  EXPECT_EQ(check("cuda>=12.4,brand=tesla", facts), Truth::no);
  EXPECT_EQ(check("cuda>=12.0 brand=tesla", facts), Truth::yes);
}

TEST(Requirement, compares_dotted_numbers) {
  EXPECT_EQ(compare_versions("12.10", "12.9"), 1);
  EXPECT_EQ(compare_versions("12", "12.0"), 0);
  EXPECT_EQ(compare_versions("570.86.15", "570.133.20"), -1);
  EXPECT_EQ(compare_versions("12.x", "12"), std::nullopt);
}

TEST(Requirement, says_what_it_can_not_read) {
  auto line = [](std::string_view text) { return to_line(parse_requirement(text).error()); };
  EXPECT_EQ(line("os>=3"), "expected cuda, driver, arch or brand with a value, got 'os>=3'");
  EXPECT_EQ(line("cuda"), "expected cuda, driver, arch or brand with a value, got 'cuda'");
  EXPECT_EQ(line("cuda>=new"), "expected a comparison, got 'cuda>=new'");
  EXPECT_EQ(line("brand>tesla"), "expected a comparison, got 'brand>tesla'");
  EXPECT_EQ(line("cuda!12"), "expected a comparison, got 'cuda!12'");
  EXPECT_EQ(line(" "), "expected a requirement, got nothing");
}

}  // namespace
}  // namespace berth::gpu
