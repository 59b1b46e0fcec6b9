// SPDX-License-Identifier: Apache-2.0
#include "engine/node/match.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/show/match_text.hpp"

namespace berth::cli {
namespace {

/// Shared by the verbs that match entries with nodes.
struct MatchOptions {
  engine::MatchRequest request;
  bool local = false;
  std::optional<std::string> driver_mode;
  std::string format = "table";
};

FlagTable match_flags(MatchOptions& o) {
  FlagTable table{
      file_flag("node", 0, "Use a saved profile instead of this machine", &o.request.node),
      choice_flag("gpu-driver", "MODE", "As for 'berth run': bind, volume, copy, image or none",
                  &o.driver_mode, {"bind", "volume", "copy", "image", "none"}),
      {"local", 0, "", "Look only in the store, not at a registry", &o.local},
      format_flag(o.format),
  };
  add_registry_flags(table, o.request.access);
  return table;
}

/// Completes the request from flags.  Errors: usage.
Result<void> finish_match_request(MatchOptions& options, const std::string& reference) {
  options.request.reference = reference;
  options.request.look_up = options.local ? engine::LookUp::store : engine::LookUp::registry;
  if (options.driver_mode) {
    options.request.driver_mode = TRY(parse_enum<policy::DriverMode>(*options.driver_mode));
  }
  return {};
}

struct MatchFound {
  engine::Offer offer;
  engine::Answer answer;
};

/// For one node: looks `reference` up and judges it.
Result<MatchFound> find_match(Session& session, MatchOptions options,
                              const std::string& reference) {
  TRY(finish_match_request(options, reference));
  MatchFound found;
  found.offer = TRY(engine::look_up(session.context, options.request));
  found.answer = TRY(engine::match_node(session.context, options.request, found.offer));
  return found;
}

// ---- match --------------------------------------------------------------------------------------

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

Result<int> show_match(Session& session, const MatchOptions& o, const std::string& reference) {
  MatchFound found = TRY(find_match(session, o, reference));
  if (o.format == "json") {
    print_json(session, match_json(found.offer, found.answer));
  } else {
    print(session, match_table(found.answer));
  }
  return match_status(found.answer.ranking);
}

Result<int> run_match(Session& session, const MatchVerbOptions& o, Arguments arguments) {
  if (o.fleet && o.request.node) {
    return make_error(Kind::usage, "--node and --fleet cannot be used together", "one of them");
  }
  if (o.fleet) return run_fleet(session, o, *o.fleet, arguments[0]);
  return show_match(session, o, arguments[0]);
}

// ---- why ----------------------------------------------------------------------------------------

Result<int> run_why(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchFound found = TRY(find_match(session, o, arguments[0]));
  const match::Ranking& ranking = found.answer.ranking;
  if (o.format == "json") {
    print_json(session, match_json(found.offer, found.answer));
  } else if (const match::Judged* best = ranking.best()) {
    print(session, entry_text(*best, true));
  } else {
    print(session, "none of " + std::to_string(ranking.entries.size()) +
                       " entries: " + match::refusal(ranking) + "\n");
  }
  return match_status(ranking);
}

/// By digest, or its beginning, or by the publisher's name for it.
Result<size_t> find_entry(const match::Ranking& ranking, const std::string& word) {
  std::optional<size_t> found;
  std::string digest = word.starts_with("sha256:") ? word : "sha256:" + word;
  for (size_t i = 0; i < ranking.entries.size(); ++i) {
    const oci::Descriptor& entry = ranking.entries[i].candidate.descriptor;
    auto name = entry.annotations.find(std::string(match::kPrefix) + "name");
    bool named = name != entry.annotations.end() && name->second == word;
    if (!named && !entry.digest.text().starts_with(digest)) continue;
    if (found) {
      return make_error(Kind::usage, quote(word) + " matches several entries",
                        "give more of the digest");
    }
    found = i;
  }
  if (!found) {
    return make_error(Kind::not_found, "the image has no entry " + quote(word),
                      "'berth match' lists them");
  }
  return *found;
}

Result<int> run_why_not(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchFound found = TRY(find_match(session, o, arguments[0]));
  match::Ranking& ranking = found.answer.ranking;
  size_t index = TRY(find_entry(ranking, arguments[1]));
  bool taken = !ranking.order.empty() && ranking.order.front() == index;
  if (o.format == "json") {
    std::vector<match::Judged> one{ranking.entries[index]};
    bool fails = one.front().verdict.outcome == match::Outcome::fail;
    engine::Answer alone{found.answer.node, {std::move(one), {}}};
    if (!fails) alone.ranking.order.push_back(0);
    print_json(session, match_json(found.offer, alone));
    return 0;
  }
  print(session, entry_text(ranking.entries[index], taken));
  const match::Judged* best = ranking.best();
  if (!taken && best != nullptr)
    print(session, "chosen instead: " + match::entry_name(best->candidate) + "\n");
  return 0;
}

// ---- what if ------------------------------------------------------------------------------------

Result<int> run_what_if(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchOptions changed = o;
  std::string reference = arguments[0];
  arguments.erase(arguments.begin());
  changed.request.what_if = join(arguments, " ");
  return show_match(session, changed, reference);
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
const Verb why_verb{
    .text = {.name = "why",
             .arguments = "IMAGE",
             .summary = "Explain why the chosen variant fits",
             .example = "berth why app:1.0",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(match_flags, run_why); },
};
const Verb why_not_verb{
    .text = {.name = "why-not",
             .arguments = "IMAGE ENTRY",
             .summary = "Explain why a variant is not chosen",
             .example = "berth why-not app:1.0 sha256:0f3c",
             .complete = Complete::image},
    .arity = {2, 2},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(match_flags, run_why_not); },
};
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
