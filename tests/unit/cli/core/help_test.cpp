// SPDX-License-Identifier: Apache-2.0
#include "cli/core/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;

struct HelpOptions {
  bool force = false;
  std::vector<std::string> env;
  std::string format;
};

VerbPage page(HelpOptions& o) {
  return {{"gpu rm", "GPU [GPU...]", "Remove GPUs", "berth gpu rm -f 0", Complete::container},
          {{"force", 'f', "", "Even 'busy' ones", &o.force},
           {"env", 'e', "K=V", "Set a variable", &o.env},
           {"format", 0, "FORMAT", "How", &o.format, {"table", "json"}}}};
}

TEST(VerbHelp, is_summary_example_usage_and_flags) {
  HelpOptions o;
  EXPECT_EQ(verb_help("berth", page(o)),
            "Remove GPUs, for example\n"
            "  berth gpu rm -f 0\n"
            "\n"
            "Usage: berth gpu rm [FLAGS] GPU [GPU...]\n"
            "\n"
            "Flags:\n"
            "  -f, --force          Even 'busy' ones\n"
            "  -e, --env K=V        Set a variable\n"
            "      --format FORMAT  How\n"
            "      --help           Show this help\n");
}

TEST(VerbHelp, does_not_promise_flags_where_there_are_none) {
  EXPECT_THAT(verb_help("berth", {{"tag", "SOURCE TARGET", "Name it", "berth tag a b"}, {}}),
              HasSubstr("Usage: berth tag SOURCE TARGET\n"));
}

TEST(ManPage, escapes_what_roff_would_read_as_a_request) {
  HelpOptions o;
  VerbPage odd = page(o);
  odd.text.example = ".berth 'a\\b'";
  std::string text = man_page("berth", "0.1", odd, {});
  EXPECT_THAT(text, HasSubstr(".TH berth-gpu-rm 1 \"\" \"berth 0.1\"\n"));
  EXPECT_THAT(text, HasSubstr("\n\\&.berth 'a\\eb'\n"));
  EXPECT_THAT(text, HasSubstr(".TP\n.B \\-e, \\-\\-env \\fIK=V\\fR\nSet a variable.\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("GLOBAL FLAGS")));
}

TEST(Completion, offers_the_words_that_an_argument_may_be) {
  VerbPage doctor{{"doctor", "[gpu]", "Look", "berth doctor"}, {}};
  doctor.text.words = "gpu host";
  CompletionInput input{"berth", {}, {doctor}};
  EXPECT_THAT(bash_completion(input), HasSubstr("compgen -W \"gpu host\""));
  EXPECT_THAT(zsh_completion(input), HasSubstr("'*:argument:(gpu host)'"));
  EXPECT_THAT(fish_completion(input), HasSubstr("-a 'gpu host'"));
}

TEST(Completion, offers_flags_choices_and_names_in_every_shell) {
  HelpOptions o;
  CompletionInput input{"berth", {}, {page(o)}};
  std::string bash = bash_completion(input);
  EXPECT_THAT(bash, HasSubstr("--help --force --env --format"));
  EXPECT_THAT(bash, HasSubstr("compgen -W \"table json\""));
  EXPECT_THAT(bash, HasSubstr("berth ps -a"));
  std::string zsh = zsh_completion(input);
  EXPECT_THAT(zsh, HasSubstr("'-f[Even '\\''busy'\\'' ones]'"));
  EXPECT_THAT(zsh, HasSubstr("'*--env=[Set a variable]:K=V: '"));
  std::string fish = fish_completion(input);
  EXPECT_THAT(fish, HasSubstr("-s f -l force -d 'Even \\'busy\\' ones'"));
  EXPECT_THAT(fish, HasSubstr("-l format -x -a 'table json' -d 'How'"));
}

}  // namespace
}  // namespace berth::cli
