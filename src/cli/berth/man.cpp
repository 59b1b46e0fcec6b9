// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/verbs.hpp"

namespace berth::cli {
namespace {

Result<int> run_man(Session& session, const NoOptions&, Arguments arguments) {
  if (arguments.empty()) {
    for (const Verb* verb : all_verbs()) print(session, std::string(verb->text.name) + "\n");
    return 0;
  }
  GlobalOptions globals;
  FlagTable program_flags = global_flags(globals);
  Call call = TRY(find_verb(arguments));
  if (!call.words.empty()) {
    return make_error(Kind::usage, quote("berth man") + " takes one verb; see 'berth man --help'");
  }
  VerbPage page{call.verb->text, call.verb->command().flags};
  print(session, man_page("berth", berth_version(), page, program_flags));
  return 0;
}

}  // namespace

const Verb man_verb{
    .text = {.name = "man",
             .arguments = "[VERB]",
             .summary = "Print the manual page of a verb, or the names of all verbs",
             .example = "berth man run | man -l -",
             .complete = Complete::verb},
    .arity = {0, 2},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_man); },
};

}  // namespace berth::cli
