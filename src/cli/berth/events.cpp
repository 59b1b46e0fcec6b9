// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/events.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/show/container_words.hpp"

namespace berth::cli {
namespace {

struct EventsOptions {
  std::vector<engine::Filter> filters;
  std::optional<std::string> format;
  std::optional<int64_t> since_ns;
  std::optional<int64_t> until_ns;
};

FlagTable events_flags(EventsOptions& o) {
  return {
      filter_flag(o.filters),
      {"format", 0, "FORMAT", "Output format: json or a template such as '{{.Action}} {{.ID}}'",
       &o.format},
      {"since", 0, "TIME", "Also show past events since a time, or a duration such as 10m ago",
       read_moment(o.since_ns)},
      {"until", 0, "TIME", "Show events until a time, then exit", read_moment(o.until_ns)},
  };
}

/// The names of the members of docker's events, in templates and in JSON.
struct Names {
  const char *status, *id, *from, *scope, *time, *time_ns;
};
constexpr Names kTemplateNames = {"Status", "ID", "From", "Scope", "Time", "TimeNano"};
constexpr Names kJsonNames = {"status", "id", "from", "scope", "time", "timeNano"};

json::Value document(const events::Event& event, const Names& names) {
  constexpr int64_t kSecond = 1'000'000'000;
  json::Object attributes;
  for (const auto& [name, value] : event.attributes) {
    attributes.emplace_back(name, json::Value(value));
  }
  auto image = event.attributes.find("image");
  std::string from = image == event.attributes.end() ? "" : image->second;
  json::Object actor = {{"ID", json::Value(event.id)},
                        {"Attributes", json::Value(std::move(attributes))}};
  return json::Value(json::Object{{names.status, json::Value(event.action)},
                                  {names.id, json::Value(event.id)},
                                  {names.from, json::Value(std::move(from))},
                                  {"Type", json::Value(event.type)},
                                  {"Action", json::Value(event.action)},
                                  {"Actor", json::Value(std::move(actor))},
                                  {names.scope, json::Value("local")},
                                  {names.time, json::Value(event.time_ns / kSecond)},
                                  {names.time_ns, json::Value(event.time_ns)}});
}

/// "2026-11-22T10:00:00.000000007+01:00 container start 0123… (image=web, name=front)"
std::string line(const events::Event& event) {
  std::string text = zoned_moment(event.time_ns) + " " + event.type + " " + event.action;
  text += " " + event.id;
  std::vector<std::string> attributes;
  for (const auto& [name, value] : event.attributes) attributes.push_back(name + "=" + value);
  if (!attributes.empty()) text += " (" + join(attributes, ", ") + ")";
  return escape_controls(text);
}

Result<int> run_events(Session& session, const EventsOptions& o, Arguments) {
  std::optional<DocumentFormat> format;
  // JSON has docker's member names, which differ from those in templates.
  bool json = o.format == "json" || o.format == "{{json .}}";
  if (o.format && !json) {
    auto made = DocumentFormat::make(*o.format);
    if (!made.ok()) return std::move(made).error();
    format = std::move(*made);
  }
  std::optional<Error> failed;
  auto show = [&](const events::Event& event) {
    if (json) return print(session, json::dump(document(event, kJsonNames)) + "\n");
    if (!format) return print(session, line(event) + "\n");
    auto text = format->text(document(event, kTemplateNames));
    if (text.ok()) return print(session, *text + "\n");
    if (!failed) failed = std::move(text).error();
  };
  engine::EventQuery query{o.since_ns, o.until_ns, engine::Filters(o.filters)};
  TRY(engine::watch_events(session.context, query, [&](const events::Event& event) {
    show(event);
    return !failed;
  }));
  if (failed) return std::move(*failed);
  return 0;
}

}  // namespace

const Verb events_verb{
    .text = {.name = "events",
             .summary = "Show events of containers, images and volumes as they happen",
             .example = "berth events --since 10m --filter event=die"},
    .command = [] { return make_command(events_flags, run_events); },
};

}  // namespace berth::cli
