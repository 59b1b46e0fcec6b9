// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/match_flags.hpp"
#include "cli/berth/show/match_text.hpp"

namespace berth::cli {
namespace {

FlagTable what_if_flags(MatchOptions& o) {
  FlagTable table;
  add_match_flags(table, o);
  return table;
}

Result<int> run_what_if(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchOptions changed = o;
  std::string reference = arguments[0];
  arguments.erase(arguments.begin());
  changed.request.what_if = join(arguments, " ");
  MatchFound found = TRY(find_match(session, changed, reference));
  if (o.format == "json") {
    print_json(session, match_json(found.offer, found.answer));
  } else {
    print(session, match_table(found.answer));
  }
  return match_status(found.answer.ranking);
}

}  // namespace

const Verb what_if_verb{
    .text = {.name = "what-if",
             .arguments = "IMAGE KEY=VALUE [KEY=VALUE...]",
             .summary = "Show which variant would be chosen if the node were different",
             .example = "berth what-if app:1.0 driver=580.65 gpu=sm_90",
             .complete = Complete::image},
    .arity = {2},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(what_if_flags, run_what_if); },
};

}  // namespace berth::cli
