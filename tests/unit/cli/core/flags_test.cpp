// SPDX-License-Identifier: Apache-2.0
#include "cli/core/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace berth::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Options {
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool remove = false;
  std::vector<std::string> env;
  std::optional<std::string> entrypoint;
  std::string format = "table";
  std::optional<uint64_t> memory;
  std::optional<int64_t> pids;
  std::optional<uint64_t> tail;
};

FlagTable table(Options& o) {
  return {
      {"interactive", 'i', "", "Keep stdin open", &o.interactive},
      {"tty", 't', "", "Give it a terminal", &o.terminal},
      {"detach", 'd', "", "Stay in the background", &o.detach},
      {"rm", 0, "", "Remove it", &o.remove},
      {"env", 'e', "K=V", "Set a variable", &o.env},
      {"entrypoint", 0, "E", "Another entrypoint", &o.entrypoint},
      {"format", 0, "FORMAT", "How", &o.format, {"table", "json"}},
      {"memory", 'm', "BYTES", "At most", read_bytes(o.memory)},
      {"pids-limit", 0, "N", "At most", read_integer(o.pids)},
      {"tail", 'n', "N", "Lines", &o.tail},
  };
}

struct Outcome {
  Options options;
  Parsed parsed;
  std::string error;
};

Outcome read(std::vector<std::string> words, FlagsEnd end = FlagsEnd::at_first_argument) {
  Outcome outcome;
  auto parsed = parse(table(outcome.options), end, words, "berth run");
  if (parsed.ok()) {
    outcome.parsed = *parsed;
  } else {
    EXPECT_EQ(parsed.error().kind, Kind::usage);
    outcome.error = to_line(parsed.error());
  }
  return outcome;
}

TEST(Flags, values_may_stand_apart_or_behind_an_equals_sign) {
  EXPECT_THAT(read({"--env=A=1", "--env", "B=2"}).options.env, ElementsAre("A=1", "B=2"));
}

TEST(Flags, values_of_letters_may_stand_apart_or_join) {
  EXPECT_THAT(read({"-e", "A=1", "-eB=2", "-e=C=3", "-e", "=D"}).options.env,
              ElementsAre("A=1", "B=2", "C=3", "=D"));
}

TEST(Flags, a_letter_without_value_may_be_set_to_false) {
  EXPECT_FALSE(read({"-i", "-i=false"}).options.interactive);
  Outcome joined = read({"-it=false", "-d=true", "image", "-d=false"});
  EXPECT_TRUE(joined.options.interactive && !joined.options.terminal && joined.options.detach);
  EXPECT_THAT(joined.parsed.arguments, ElementsAre("image", "-d=false"));
  Outcome rmi = read({"a", "-t=true", "b", "-i"}, FlagsEnd::at_double_dash);
  EXPECT_TRUE(rmi.options.terminal && rmi.options.interactive);
  EXPECT_THAT(rmi.parsed.arguments, ElementsAre("a", "b"));
  EXPECT_EQ(read({"-i=maybe"}).error,
            "invalid value 'maybe' for '-i': expected true or false; see 'berth run --help'");
  EXPECT_EQ(read({"-i="}).error,
            "a value after '=' in '-i=' needs the long name of the flag; see 'berth run --help'");
}

TEST(Flags, letters_without_value_may_be_joined) {
  Options o = read({"-itd"}).options;
  EXPECT_TRUE(o.interactive && o.terminal && o.detach);
  Options p = read({"-ite", "A=1"}).options;
  EXPECT_TRUE(p.interactive && p.terminal && !p.detach);
  EXPECT_THAT(p.env, ElementsAre("A=1"));
  EXPECT_THAT(read({"-iteA=1"}).options.env, ElementsAre("A=1"));
}

TEST(Flags, a_switch_takes_a_value_only_behind_an_equals_sign) {
  EXPECT_TRUE(read({"--rm=true"}).options.remove);
  EXPECT_FALSE(read({"--rm", "--rm=false"}).options.remove);
  Outcome apart = read({"--rm", "false"});
  EXPECT_TRUE(apart.options.remove);
  EXPECT_THAT(apart.parsed.arguments, ElementsAre("false"));
  EXPECT_EQ(read({"--rm=maybe"}).error,
            "invalid value 'maybe' for '--rm': expected true or false; see 'berth run --help'");
}

TEST(Flags, an_empty_value_is_a_value) {
  EXPECT_EQ(read({"--entrypoint="}).options.entrypoint, "");
  EXPECT_EQ(read({"--entrypoint", ""}).options.entrypoint, "");
  EXPECT_EQ(read({}).options.entrypoint, std::nullopt);
}

TEST(Flags, the_word_after_a_flag_is_its_value_even_with_a_dash) {
  EXPECT_EQ(read({"--pids-limit", "-1"}).options.pids, -1);
  EXPECT_THAT(read({"-e", "--rm"}).options.env, ElementsAre("--rm"));
  EXPECT_EQ(read({"--entrypoint", "--"}).options.entrypoint, "--");
}

TEST(Flags, the_last_value_wins) {
  EXPECT_EQ(read({"--format", "json", "--format=table"}).options.format, "table");
  EXPECT_EQ(read({"-m1g", "--memory", "512m"}).options.memory, 512u << 20);
}

TEST(Flags, of_run_end_at_the_image) {
  Outcome run = read({"--rm", "debian", "ls", "--rm=false", "-e", "x"});
  EXPECT_TRUE(run.options.remove);
  EXPECT_THAT(run.parsed.arguments, ElementsAre("debian", "ls", "--rm=false", "-e", "x"));
}

TEST(Flags, of_other_verbs_may_follow_arguments) {
  Outcome rmi = read({"debian", "--rm", "ubuntu", "-i"}, FlagsEnd::at_double_dash);
  EXPECT_TRUE(rmi.options.remove && rmi.options.interactive);
  EXPECT_THAT(rmi.parsed.arguments, ElementsAre("debian", "ubuntu"));
}

TEST(Flags, do_not_depend_on_POSIXLY_CORRECT) {
  ::setenv("POSIXLY_CORRECT", "1", 1);
  Outcome rmi = read({"debian", "--rm"}, FlagsEnd::at_double_dash);
  ::unsetenv("POSIXLY_CORRECT");
  EXPECT_TRUE(rmi.options.remove);
}

TEST(Flags, end_at_a_double_dash) {
  for (FlagsEnd end : {FlagsEnd::at_first_argument, FlagsEnd::at_double_dash}) {
    Outcome outcome = read({"--rm", "--", "-i", "--env"}, end);
    EXPECT_TRUE(outcome.options.remove);
    EXPECT_FALSE(outcome.options.interactive);
    EXPECT_THAT(outcome.parsed.arguments, ElementsAre("-i", "--env"));
  }
  EXPECT_THAT(read({"a", "--", "-i"}, FlagsEnd::at_double_dash).parsed.arguments,
              ElementsAre("a", "-i"));
}

TEST(Flags, a_lone_dash_is_an_argument) {
  EXPECT_THAT(read({"-"}, FlagsEnd::at_double_dash).parsed.arguments, ElementsAre("-"));
}

TEST(Flags, are_never_abbreviated) {
  EXPECT_EQ(read({"--interact"}).error,
            "unknown flag '--interact', did you mean '--interactive'? see 'berth run --help'");
  EXPECT_EQ(read({"--entryp", "sh"}).error,
            "unknown flag '--entryp', did you mean '--entrypoint'? see 'berth run --help'");
  EXPECT_EQ(read({"--entryp"}).error,
            "unknown flag '--entryp', did you mean '--entrypoint'? see 'berth run --help'");
  EXPECT_EQ(read({"--e=1"}).error, "unknown flag '--e'; see 'berth run --help'");
  EXPECT_EQ(read({"--hel"}).error,
            "unknown flag '--hel', did you mean '--help'? see 'berth run --help'");
}

TEST(Flags, an_unknown_one_names_its_nearest_neighbour) {
  EXPECT_EQ(read({"--evn", "A=1"}).error,
            "unknown flag '--evn', did you mean '--env'? see 'berth run --help'");
  EXPECT_EQ(read({"--memroy=1g"}).error,
            "unknown flag '--memroy', did you mean '--memory'? see 'berth run --help'");
  EXPECT_EQ(read({"--privileged"}).error, "unknown flag '--privileged'; see 'berth run --help'");
}

TEST(Flags, an_unknown_letter_shows_its_word) {
  EXPECT_EQ(read({"-q"}).error, "unknown flag '-q'; see 'berth run --help'");
  EXPECT_EQ(read({"-itq"}).error, "unknown flag '-q' in '-itq'; see 'berth run --help'");
  EXPECT_EQ(read({"-qit"}).error, "unknown flag '-q' in '-qit'; see 'berth run --help'");
  EXPECT_EQ(read({"-qit", "x"}).error, "unknown flag '-q' in '-qit'; see 'berth run --help'");
  EXPECT_EQ(read({"-rm"}).error, "unknown flag '-rm', did you mean '--rm'? see 'berth run --help'");
  EXPECT_EQ(read({"-="}).error,
            "a value after '=' in '-=' needs the long name of the flag; see 'berth run --help'");
  EXPECT_EQ(read({"-i", "-=false"}).error,
            "a value after '=' in '-=false' needs the long name of the flag; "
            "see 'berth run --help'");
  EXPECT_EQ(read({"-\xc3\xa9"}).error, "unknown flag in '-\xc3\xa9'; see 'berth run --help'");
}

TEST(Flags, a_missing_value_is_named) {
  EXPECT_EQ(read({"--env"}).error, "'--env' needs a value (K=V); see 'berth run --help'");
  EXPECT_EQ(read({"-ite"}).error, "'-e' needs a value (K=V); see 'berth run --help'");
}

TEST(Flags, a_value_that_cannot_be_read_is_shown) {
  EXPECT_EQ(read({"--memory", "lots"}).error,
            "invalid value 'lots' for '--memory': expected a size such as 512m or 2g; "
            "see 'berth run --help'");
  EXPECT_EQ(
      read({"-n-1"}).error,
      "invalid value '-1' for '-n' (--tail): expected a whole number; see 'berth run --help'");
  EXPECT_EQ(read({"--pids-limit=1.5"}).error,
            "invalid value '1.5' for '--pids-limit': expected a whole number; "
            "see 'berth run --help'");
  EXPECT_EQ(read({"--format=xml"}).error,
            "invalid value 'xml' for '--format': expected 'table' or 'json'; "
            "see 'berth run --help'");
  EXPECT_EQ(read({"--format=\x1b[2J"}).error,
            "invalid value '\\x1b[2J' for '--format': expected 'table' or 'json'; "
            "see 'berth run --help'");
}

TEST(Flags, help_wins_over_what_follows) {
  EXPECT_TRUE(read({"--help", "--nonsense"}).parsed.help);
  EXPECT_TRUE(read({"-h"}).parsed.help);
  EXPECT_TRUE(read({"-ih"}).parsed.help);
  EXPECT_EQ(read({"--help=1"}).error, "'--help' takes no value; see 'berth run --help'");
}

TEST(Flags, the_letter_h_belongs_to_a_flag_that_has_it) {
  std::string hostname;
  auto parsed = parse({{"hostname", 'h', "NAME", "Its name", &hostname}},
                      FlagsEnd::at_first_argument, {"-h", "n1"}, "berth run");
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->help);
  EXPECT_EQ(hostname, "n1");
}

TEST(Arity, says_how_many_arguments_a_verb_takes) {
  auto line = [](Arity arity, size_t count) {
    auto result = check_arity(arity, count, "berth tag", "berth tag SOURCE TARGET");
    return result.ok() ? "" : to_line(result.error());
  };
  EXPECT_EQ(line({2, 2}, 2), "");
  EXPECT_EQ(line({2, 2}, 1),
            "'berth tag' takes 2 arguments, got 1; usage: berth tag SOURCE TARGET; "
            "see 'berth tag --help'");
  EXPECT_EQ(line({1, SIZE_MAX}, 0),
            "'berth tag' takes at least 1 argument, got 0; usage: berth tag SOURCE TARGET; "
            "see 'berth tag --help'");
  EXPECT_EQ(line({0, 0}, 3),
            "'berth tag' takes no arguments, got 3; usage: berth tag SOURCE TARGET; "
            "see 'berth tag --help'");
  EXPECT_EQ(line({0, 1}, 3),
            "'berth tag' takes at most 1 argument, got 3; usage: berth tag SOURCE TARGET; "
            "see 'berth tag --help'");
}

}  // namespace
}  // namespace berth::cli
