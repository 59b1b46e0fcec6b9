// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/berth/match_flags.hpp"
#include "cli/berth/show/match_page.hpp"
#include "cli/berth/show/match_text.hpp"

namespace berth::cli {
namespace {

struct MatchVerbOptions : MatchOptions {
  std::optional<std::string> fleet;
  bool html = false;
};

FlagTable match_verb_flags(MatchVerbOptions& o) {
  FlagTable table = match_flags(o);
  table.insert(table.begin(),
               {directory_flag("fleet", 0, "Use every saved profile in DIR", &o.fleet),
                {"html", 0, "", "With --fleet, print a page for browsers", &o.html}});
  return table;
}

/// What is printed of a fleet, image by image.
struct FleetOutput {
  json::Array nodes;
  std::string table;
  MatchPage page;
};

Result<int> run_fleet(Session& session, MatchVerbOptions o, Arguments references) {
  TRY(finish_match_request(o, references[0]));
  int status = 0;
  FleetOutput output;
  auto add = [&](const engine::Offer& offer, const std::vector<engine::Answer>& answers) {
    for (const engine::Answer& answer : answers) {
      status = std::max(status, match_status(answer.ranking));
      if (o.format == "json") output.nodes.push_back(match_json(offer, answer));
    }
    if (o.html) {
      output.page.add(offer.asked, answers);
    } else if (o.format != "json") {
      if (references.size() > 1) output.table += offer.asked + "\n";
      output.table += fleet_table(answers);
    }
  };
  TRY(engine::match_fleet(session.context, o.request, references, *o.fleet, add));
  if (o.html) {
    print(session, output.page.text());
  } else if (o.format == "json") {
    print_json(session, std::move(output.nodes));
  } else {
    print(session, output.table);
  }
  return status;
}

Result<int> run_match(Session& session, const MatchVerbOptions& o, Arguments arguments) {
  if (o.fleet && o.request.node) {
    return make_error(Kind::usage, "--node and --fleet cannot be used together", "one of them");
  }
  if (o.html && o.format == "json") {
    return make_error(Kind::usage, "--html and --format json cannot be used together",
                      "one of them");
  }
  if (o.fleet) return run_fleet(session, o, arguments);
  if (o.html) return make_error(Kind::usage, "--html is for a fleet", "--fleet DIR");
  return show_match(session, o, arguments[0]);
}

Arity match_arity(const MatchVerbOptions& o) {
  return o.fleet ? Arity{1} : Arity{1, 1};
}

}  // namespace

const Verb match_verb{
    .text = {.name = "match",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Show which variants of an image run on a node, and which is chosen",
             .example = "berth match --fleet nodes/ app:1.0",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command =
        [] {
          return make_command<MatchVerbOptions>(match_verb_flags, run_match, nullptr, match_arity);
        },
};

}  // namespace berth::cli
