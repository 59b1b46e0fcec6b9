// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/match_flags.hpp"

namespace berth::cli {
namespace {

Result<int> run_what_if(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchOptions changed = o;
  std::string reference = arguments[0];
  arguments.erase(arguments.begin());
  changed.request.what_if = join(arguments, " ");
  return show_match(session, changed, reference);
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
    .command = [] { return make_command(match_flags, run_what_if); },
};

}  // namespace berth::cli
