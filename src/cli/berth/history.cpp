// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "cli/template/listing.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

constexpr size_t kCreatedByWidth = 45;

struct HistoryOptions {
  bool human = true;
  bool no_trunc = false;
  bool quiet = false;
  std::string format;
};

FlagTable history_flags(HistoryOptions& o) {
  return {
      {"human", 'H', "", "Show readable sizes and dates (--human=false for exact ones)", &o.human},
      {"no-trunc", 0, "", "Do not truncate ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
      template_flag(o.format),
  };
}

constexpr ListField kHistoryFields[] = {
    {"Comment", "COMMENT"},
    {"CreatedAt", "CREATED AT"},
    {"CreatedBy", "CREATED BY"},
    {"CreatedSince", "CREATED"},
    {"ID", "IMAGE"},
    {"Size", "SIZE"},
};

constexpr ListKind kSteps{
    .fields = kHistoryFields,
    .table = "{{.ID}}\t{{.CreatedSince}}\t{{.CreatedBy}}\t{{.Size}}\t{{.Comment}}"};

constexpr ListKind kExactSteps{
    .fields = kHistoryFields,
    .table = "{{.ID}}\t{{.CreatedAt}}\t{{.CreatedBy}}\t{{.Size}}\t{{.Comment}}"};

std::string id_of(const engine::HistoryEntry& entry, const HistoryOptions& o) {
  if (!entry.image_id) return "<missing>";
  return shown_id(*entry.image_id, o.no_trunc ? Ids::whole : Ids::shortened);
}

ListRow row_of(const engine::HistoryEntry& entry, const HistoryOptions& o) {
  // As in docker: a tab in a shell command becomes a blank.
  std::string by = entry.created_by;
  std::ranges::replace(by, '\t', ' ');
  json::Value time = json_time(entry.created_at);
  return {{entry.comment, time.is_null() ? "N/A" : *time.string(),
           o.no_trunc ? by : truncate(by, kCreatedByWidth), ago(entry.created_at), id_of(entry, o),
           o.human ? human_bytes(entry.size) : std::to_string(entry.size)}};
}

Result<int> run_history(Session& session, const HistoryOptions& o, Arguments arguments) {
  Listing listing =
      TRY(Listing::make(o.human ? kSteps : kExactSteps, {.text = o.format, .quiet = o.quiet}));
  std::vector<ListRow> rows;
  for (const auto& entry : TRY(engine::image_history(session.context, arguments[0]))) {
    rows.push_back(row_of(entry, o));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

}  // namespace

const Verb history_verb{
    .text = {.name = "history",
             .arguments = "IMAGE",
             .summary = "Show the history of an image",
             .example = "berth history --no-trunc debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .command = [] { return make_command(history_flags, run_history); },
};

}  // namespace berth::cli
