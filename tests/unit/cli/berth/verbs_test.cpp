// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/verbs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EveryVerb, has_flags_that_can_be_told_apart) {
  for (const Verb* verb : all_verbs()) {
    Command command = verb->command();
    std::set<std::string_view> names{"help"};
    std::set<char> letters{0};
    for (const Flag& flag : command.flags) {
      EXPECT_TRUE(names.insert(flag.name).second) << verb->text.name << " --" << flag.name;
      EXPECT_TRUE(flag.letter == 0 || letters.insert(flag.letter).second)
          << verb->text.name << " -" << flag.letter;
      bool is_switch = std::holds_alternative<bool*>(flag.target);
      bool may_be = is_switch || std::holds_alternative<ReadValue>(flag.target);
      EXPECT_TRUE(flag.value.empty() ? may_be : !is_switch)
          << verb->text.name << " --" << flag.name;
    }
  }
}

TEST(EveryVerb, has_help_that_fits_a_terminal) {
  for (const Verb* verb : all_verbs()) {
    std::string help = verb_help("berth", {verb->text, verb->command().flags});
    for (std::string_view line : split(help, '\n')) EXPECT_LE(text_width(line), 100u) << line;
    EXPECT_FALSE(verb->text.summary.ends_with('.')) << verb->text.name;
  }
}

// The example of the help is the first thing that people type.
TEST(EveryVerb, has_an_example_that_parses) {
  for (const Verb* verb : all_verbs()) {
    std::string example(verb->text.example);
    size_t begin = example.find("berth ");
    ASSERT_NE(begin, std::string::npos) << example;
    example = example.substr(begin + 6);
    example = example.substr(0, example.find_first_of("|<)"));
    std::vector<std::string> words;
    for (std::string_view word : split_blank(example)) words.emplace_back(word);
    auto call = find_verb(words);
    ASSERT_TRUE(call.ok()) << example;
    EXPECT_EQ(call->verb, verb) << example;
    if (verb->text.name == "import") continue;  // its quotes are for a shell
    auto parsed = parse(verb->command().flags, verb->flags_end, call->words, call->command);
    ASSERT_TRUE(parsed.ok()) << to_line(parsed.error());
    EXPECT_TRUE(check_arity(verb->arity, parsed->arguments.size(), "", "").ok()) << example;
  }
}

TEST(FindVerb, takes_dockers_long_names) {
  auto verb = [](std::vector<std::string> words) {
    auto call = find_verb(words);
    return call.ok() ? std::string(call->verb->text.name) : to_line(call.error());
  };
  EXPECT_EQ(verb({"image", "ls"}), "images");
  EXPECT_EQ(verb({"image", "rm", "-f", "x"}), "rmi");
  EXPECT_EQ(verb({"container", "run", "x"}), "run");
  EXPECT_EQ(verb({"container", "ls"}), "ps");
  EXPECT_EQ(verb({"gpu", "ls"}), "gpu list");
  EXPECT_EQ(verb({"container", "lss"}),
            "unknown verb 'lss', did you mean 'ls'? see 'berth container --help'");
  EXPECT_EQ(verb({"gpu", "--format"}),
            "'berth gpu' needs one of: list, top, ls; see 'berth gpu --help'");
  EXPECT_EQ(verb({"gpu", "monitor"}),
            "'berth gpu' has no 'monitor'; expected one of: list, top, ls; see 'berth gpu --help'");
  EXPECT_EQ(verb({"slurm", "feature"}),
            "unknown verb 'feature', did you mean 'features'? see 'berth slurm --help'");
  EXPECT_EQ(verb({"contianer", "ls"}),
            "unknown verb 'contianer', did you mean 'container'? see 'berth --help'");
  EXPECT_EQ(verb({"imgae", "ls"}),
            "unknown verb 'imgae', did you mean 'image'? see 'berth --help'");
  EXPECT_EQ(verb({"gpus", "list"}), "unknown verb 'gpus', did you mean 'gpu'? see 'berth --help'");
}

TEST(FindVerb, helps_with_a_group) {
  EXPECT_THAT(help_of_group({"policy", "--help"}).value_or(""),
              ::testing::AllOf(::testing::StartsWith("Usage: berth policy VERB [ARG...]\n"),
                               ::testing::HasSubstr("\n  check   Check the site policy"),
                               ::testing::HasSubstr("\n  lint    Check the site policy"),
                               ::testing::HasSubstr("\n  test    Show which site rules")));
  for (std::vector<std::string> words : {std::vector<std::string>{"run", "--help"},
                                         {"gpu"},
                                         {"gpu", "list"},
                                         {"nothing", "--help"}}) {
    EXPECT_FALSE(help_of_group(words)) << words[0];
  }
}

TEST(FindVerb, an_alias_says_what_kind_is_meant) {
  EXPECT_THAT(find_verb({"image", "inspect", "x"})->words, ElementsAre("--type=image", "x"));
  EXPECT_THAT(find_verb({"container", "inspect"})->words, ElementsAre("--type=container"));
}

TEST(WithoutHelp, asks_the_verb) {
  auto words = [](std::vector<std::string> typed) { return *without_help(std::move(typed)); };
  EXPECT_THAT(words({"help"}), IsEmpty());
  EXPECT_THAT(words({"help", "run"}), ElementsAre("run", "--help"));
  EXPECT_THAT(words({"help", "gpu"}), ElementsAre("gpu", "--help"));
  EXPECT_THAT(words({"help", "image", "ls"}), ElementsAre("image", "ls", "--help"));
  EXPECT_THAT(words({"help", "rnu"}), ElementsAre("rnu", "--help"));
  EXPECT_THAT(words({"run", "help"}), ElementsAre("run", "help"));
  EXPECT_EQ(to_line(without_help({"help", "run", "debian", "sh"}).error()),
            "'berth help' takes one verb; see 'berth --help'");
}

TEST(FindVerb, hands_on_what_follows) {
  auto call = find_verb({"image", "rm", "-f", "x"});
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->command, "berth image rm");
  EXPECT_THAT(call->words, ElementsAre("-f", "x"));
  EXPECT_THAT(find_verb({"ps"})->words, IsEmpty());
}

TEST(GlobalFlags, end_at_the_verb) {
  GlobalOptions options;
  auto parsed = parse(global_flags(options), FlagsEnd::at_first_argument,
                      {"--root", "/r", "--debug", "run", "--root"}, "berth");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(options.root, "/r");
  EXPECT_TRUE(options.debug);
  EXPECT_THAT(parsed->arguments, ElementsAre("run", "--root"));
}

}  // namespace
}  // namespace berth::cli
