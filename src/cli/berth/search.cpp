// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "cli/berth/common.hpp"
#include "cli/berth/flag_values.hpp"
#include "cli/core/table.hpp"
#include "cli/template/listing.hpp"
#include "engine/image/registry_search.hpp"

namespace berth::cli {
namespace {

constexpr uint64_t kUsualResults = 25;
constexpr uint64_t kMostResults = 10'000;
constexpr size_t kDescriptionWidth = 45;  // docker's

struct SearchOptions {
  engine::SearchWish wish;
  std::vector<engine::Filter> filters;
  std::string format;
  std::optional<uint64_t> limit;
  bool list_tags = false;
  bool no_trunc = false;
};

/// As in podman, "is-official" alone means "is-official=true".
ReadValue read_search_filter(std::vector<engine::Filter>& target) {
  return [&target](std::string_view text) -> Result<void> {
    std::string whole(text);
    if (whole == "is-official" || whole == "is-automated") whole += "=true";
    target.push_back(TRY(engine::parse_filter(whole)));
    return {};
  };
}

FlagTable search_flags(SearchOptions& o) {
  FlagTable table{
      {"filter", 'f', "KEY=VALUE", "Filter by stars=N, is-official=BOOL or is-automated=BOOL",
       read_search_filter(o.filters)},
      template_flag(o.format),
      {"limit", 0, "N", "Show at most N (25)", &o.limit},
      {"list-tags", 0, "", "List the tags of the given repository", &o.list_tags},
      {"no-trunc", 0, "", "Do not truncate descriptions", &o.no_trunc},
  };
  add_registry_flags(table, o.wish.access);
  return table;
}

constexpr ListField kFoundFields[] = {
    {"Description", "DESCRIPTION"}, {"IsAutomated", "AUTOMATED"},
    {"IsOfficial", "OFFICIAL"},     {"Name", "NAME"},
    {"StarCount", "STARS"},
};
constexpr ListKind kFound{
    .fields = kFoundFields,
    .table = "{{.Name}}\t{{.Description}}\t{{.StarCount}}\t{{.IsOfficial}}",
};
constexpr ListField kTagFields[] = {{"Name", "NAME"}, {"Tag", "TAG"}};
constexpr ListKind kTags{.fields = kTagFields, .table = "{{.Name}}\t{{.Tag}}"};

bool prints_json(std::string format) {
  format.erase(std::remove(format.begin(), format.end(), ' '), format.end());
  return format == "json" || format.find("{{json.}}") != format.npos;
}

/// docker uses marks in a table or a template, and "true" and "false" in JSON.
std::string mark_text(bool mark, bool json) {
  if (json) return mark ? "true" : "false";
  return mark ? "[OK]" : "";
}

Result<int> search_tags(Session& session, const engine::SearchWish& wish,
                        const std::string& format) {
  Listing listing = TRY(Listing::make(kTags, {.text = format}));
  WorkDisplay display(session, "", false);
  engine::TagList list = TRY(engine::list_tags(session.context, wish, display.progress()));
  display.finish();
  std::vector<ListRow> rows;
  for (const std::string& tag : list.tags) rows.push_back({{list.name, tag}});
  print(session, TRY(listing.text(rows)));
  return 0;
}

Result<int> run_search(Session& session, const SearchOptions& o, Arguments arguments) {
  engine::SearchWish wish = o.wish;
  wish.term = arguments[0];
  wish.filters = engine::Filters(o.filters);
  const uint64_t limit = o.limit.value_or(kUsualResults);
  if (limit == 0 || limit > kMostResults) {
    return make_error(Kind::usage, "--limit: expected a number from 1 to " +
                                       std::to_string(kMostResults) + ", got " +
                                       std::to_string(limit));
  }
  wish.limit = static_cast<uint32_t>(limit);
  if (o.list_tags) return search_tags(session, wish, o.format);
  Listing listing = TRY(Listing::make(kFound, {.text = o.format}));
  WorkDisplay display(session, "", false);
  auto found = TRY(engine::search_registry(session.context, wish, display.progress()));
  display.finish();
  const bool json = prints_json(o.format);
  std::vector<ListRow> rows;
  for (const image::FoundRepository& one : found) {
    std::string description =
        o.no_trunc ? one.description : truncate(one.description, kDescriptionWidth);
    rows.push_back({{std::move(description), mark_text(one.automated, json),
                     mark_text(one.official, json), one.name, std::to_string(one.stars)}});
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

/// Flags of podman, udocker and older versions of docker.
constexpr Elsewhere kSearchElsewhere[] = {
    {"a", "--limit N", "the output has no pauses"},
    {"all", "--limit N", "the output has no pauses"},
    {"automated", "--filter is-automated=true"},
    {"compatible", "leave it out", "stars are always listed"},
    {"s", "--filter stars=N"},
    {"stars", "--filter stars=N"},
    {"tls-verify", "--insecure-registry HOST"},
};

}  // namespace

const Verb search_verb{
    .text = {.name = "search",
             .arguments = "[REGISTRY/]TEXT",
             .summary = "Search a registry for images (Docker Hub by default)",
             .example = "berth search --filter is-official=true pytorch"},
    .arity = {1, 1},
    .elsewhere = kSearchElsewhere,
    .command = [] { return make_command(search_flags, run_search); },
};

}  // namespace berth::cli
