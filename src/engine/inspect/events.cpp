// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/events.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/container/list.hpp"
#include "engine/context/time.hpp"
#include "engine/inspect/container_query.hpp"
#include "engine/state/journal.hpp"
#include "events/journal.hpp"
#include "sys/fd/notify.hpp"
#include "sys/fd/poll.hpp"

namespace berth::engine {
namespace {

using Attributes = std::map<std::string, std::string>;

/// The polling interval if the kernel provides no notifications.
constexpr std::chrono::milliseconds kLook{200};

constexpr std::array<std::string_view, 7> kKeys = {"container", "event", "image", "label",
                                                   "scope",     "type",  "volume"};

/// The attributes of containers by id: of existing containers, and of those with a recorded
/// "create" event.
class Containers {
 public:
  explicit Containers(const Context& context) : context_(context) {}

  /// Adds the attributes of a container's "create" event to the container's other events.
  void complete(events::Event& event) {
    if (event.type != "container" || event.id.empty()) return;
    Attributes& known = find(event);
    if (event.action == "rename") known["name"] = event.attributes["name"];
    for (const auto& [name, value] : known) event.attributes.try_emplace(name, value);
    if (event.action == "destroy") known_.erase(event.id);
  }

 private:
  Attributes& find(const events::Event& event) {
    if (event.action == "create") return known_[event.id] = event.attributes;
    auto found = known_.find(event.id);
    if (found == known_.end()) found = known_.emplace(event.id, look_up(event.id)).first;
    return found->second;
  }

  Attributes look_up(const std::string& id) const {
    auto summary = get_container(context_, id);
    return summary.ok() ? attributes_of(*summary, container_details(context_, *summary).labels)
                        : Attributes();
  }

  static Attributes attributes_of(const ContainerSummary& summary, Attributes labels) {
    labels["image"] = summary.image;
    labels["name"] = summary.name;
    return labels;
  }

  const Context& context_;
  std::map<std::string, Attributes> known_;
};

std::string attribute(const events::Event& event, const std::string& name) {
  auto found = event.attributes.find(name);
  return found == event.attributes.end() ? "" : found->second;
}

/// Matches an id, an id prefix, or a name.
bool is_called(const events::Event& event, std::string_view type, const std::string& wanted) {
  return event.type == type && (event.id.starts_with(wanted) || attribute(event, "name") == wanted);
}

// Matches an image with or without its tag.
bool is_of_image(const events::Event& event, const std::string& wanted) {
  auto fits = [&](const std::string& image) {
    return image == wanted || image.substr(0, image.rfind(':')) == wanted;
  };
  if (event.type == "image") return fits(event.id) || fits(attribute(event, "name"));
  return event.type == "container" && fits(attribute(event, "image"));
}

bool fits(const Filters& filters, const events::Event& event) {
  // "exec_start: sh -c ls" and "health_status: healthy" also match the part before the colon.
  std::string word = event.action.substr(0, event.action.find(':'));
  return filters.fits("event", [&](auto& v) { return v == event.action || v == word; }) &&
         filters.fits("type", [&](auto& v) { return v == event.type; }) &&
         filters.fits("container", [&](auto& v) { return is_called(event, "container", v); }) &&
         filters.fits("volume", [&](auto& v) { return is_called(event, "volume", v); }) &&
         filters.fits("image", [&](auto& v) { return is_of_image(event, v); }) &&
         filters.fits("scope", [&](auto& v) { return v == "local"; }) &&
         filters.fits_labels(event.attributes);
}

/// Waits for more events, at most until `end_ns`.
Result<void> wait_for_more(const Result<sys::Fd>& watch, std::optional<int64_t> end_ns) {
  using namespace std::chrono;
  milliseconds patience = watch.ok() ? seconds(10) : kLook;
  if (end_ns) {
    auto left = ceil<milliseconds>(nanoseconds(*end_ns - nanoseconds_now()));
    patience = std::clamp(left, milliseconds(0), patience);
  }
  std::vector<pollfd> entries = {{watch.ok() ? watch->get() : -1, POLLIN, 0}};
  TRY(sys::poll(entries, patience));
  if (watch.ok()) sys::forget_events(*watch);
  return {};
}

}  // namespace

Result<void> watch_events(const Context& context, const EventQuery& query,
                          const std::function<bool(const events::Event&)>& sink) {
  TRY(query.filters.check_keys({kKeys.begin(), kKeys.end()}));
  const int64_t begun = nanoseconds_now();
  const bool past = query.since_ns || query.until_ns;
  const int64_t since = query.since_ns.value_or(past ? 0 : begun);
  // Watch before the first read, so that no event is missed in between.
  auto watch = sys::watch_directory(context.paths.state);
  events::Reader reader(journal_path(context.paths));
  Containers containers(context);
  while (true) {
    bool over = query.until_ns && *query.until_ns <= nanoseconds_now();
    while (auto event = TRY(reader.next())) {
      containers.complete(*event);
      if (query.until_ns && event->time_ns > *query.until_ns) return {};
      if (event->time_ns < since || !fits(query.filters, *event)) continue;
      if (!sink(*event)) return {};
    }
    if (over) return {};
    TRY(wait_for_more(watch, query.until_ns));
  }
}

}  // namespace berth::engine
