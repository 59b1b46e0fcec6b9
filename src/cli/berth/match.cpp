// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/berth/match_flags.hpp"
#include "cli/berth/show/match_text.hpp"

namespace berth::cli {
namespace {

struct MatchVerbOptions : MatchOptions {
  std::optional<std::string> fleet;
};

FlagTable match_verb_flags(MatchVerbOptions& o) {
  FlagTable table = match_flags(o);
  table.insert(table.begin(),
               directory_flag("fleet", 0, "Use every saved profile in DIR", &o.fleet));
  return table;
}

Result<int> run_fleet(Session& session, MatchOptions o, const std::string& directory,
                      const std::string& reference) {
  TRY(finish_match_request(o, reference));
  engine::Offer offer = TRY(engine::look_up(session.context, o.request));
  auto answers = TRY(engine::match_fleet(session.context, o.request, offer, directory));
  int status = 0;
  json::Array nodes;
  for (const engine::Answer& answer : answers) {
    status = std::max(status, match_status(answer.ranking));
    nodes.push_back(match_json(offer, answer));
  }
  if (o.format == "json") {
    print_json(session, std::move(nodes));
  } else {
    print(session, fleet_table(answers));
  }
  return status;
}

Result<int> run_match(Session& session, const MatchVerbOptions& o, Arguments arguments) {
  if (o.fleet && o.request.node) {
    return make_error(Kind::usage, "--node and --fleet cannot be used together", "one of them");
  }
  if (o.fleet) return run_fleet(session, o, *o.fleet, arguments[0]);
  return show_match(session, o, arguments[0]);
}

}  // namespace

const Verb match_verb{
    .text = {.name = "match",
             .arguments = "IMAGE",
             .summary = "Show which variants of an image run on a node, and which is chosen",
             .example = "berth match --fleet nodes/ app:1.0",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(match_verb_flags, run_match); },
};

}  // namespace berth::cli
