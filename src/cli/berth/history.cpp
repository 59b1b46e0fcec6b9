// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "cli/core/text_width.hpp"
#include "engine/images.hpp"

namespace berth::cli {
namespace {

constexpr size_t kCreatedByWidth = 45;

struct Options {
  bool human = true;
  bool no_trunc = false;
  bool quiet = false;
  std::string format = "table";
};

FlagTable flags(Options& o) {
  return {
      {"human", 'H', "", "Sizes and dates for people (--human=false: exact)", &o.human},
      {"no-trunc", 0, "", "Show whole ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show ids alone", &o.quiet},
      format_flag(o.format),
  };
}

json::Value to_json(const engine::HistoryEntry& entry) {
  return json::Object{
      {"id", entry.image_id ? json::Value(*entry.image_id) : json::Value()},
      {"created_at", json_time(entry.created_at)},
      {"created_by", entry.created_by},
      {"size_bytes", entry.size},
      {"comment", entry.comment},
  };
}

std::string id_of(const engine::HistoryEntry& entry, const Options& o) {
  if (!entry.image_id) return "<missing>";
  return shown_id(*entry.image_id, o.no_trunc ? Ids::whole : Ids::shortened);
}

std::string table_of(const std::vector<engine::HistoryEntry>& entries, const Options& o) {
  Table table({"IMAGE", "CREATED", "CREATED BY", "SIZE", "COMMENT"});
  for (const auto& entry : entries) {
    json::Value time = json_time(entry.created_at);
    std::string created = o.human ? ago(entry.created_at) : time.is_null() ? "N/A" : *time.string();
    std::string by = escape_controls(entry.created_by);
    table.add({id_of(entry, o), created, o.no_trunc ? by : truncate(by, kCreatedByWidth),
               o.human ? human_bytes(entry.size) : std::to_string(entry.size), entry.comment});
  }
  return table.text();
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  auto entries = TRY(engine::image_history(session.context, arguments[0]));
  if (o.format == "json") {
    json::Array list;
    for (const auto& entry : entries) list.push_back(to_json(entry));
    print_json(session, json::Object{{"history", std::move(list)}});
  } else if (o.quiet) {
    for (const auto& entry : entries) print(session, id_of(entry, o) + "\n");
  } else {
    print(session, table_of(entries, o));
  }
  return 0;
}

}  // namespace

extern const Verb history_verb;
const Verb history_verb{
    .text = {.name = "history",
             .arguments = "IMAGE",
             .summary = "Show the steps that made an image",
             .example = "berth history --no-trunc debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
