// SPDX-License-Identifier: Apache-2.0
#include "runtime/events.hpp"

#include "cli/oci/verb.hpp"

namespace berth::cli::oci {
namespace {

struct EventsOptions {
  std::string interval = "5s";
  bool stats = false;
};

FlagTable events_flags(EventsOptions& o) {
  return {{"interval", 0, "TIME", "Time between statistics (5s)", &o.interval},
          {"stats", 0, "", "Print the statistics once and exit", &o.stats}};
}

Result<int> run_events(Session& session, const EventsOptions& options, const Arguments& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  auto interval = TRY_CTX(runtime::read_duration(options.interval), "cannot use --interval");
  std::string context = "cannot watch container '" + arguments[0] + "'";
  if (options.stats) {
    TRY_CTX(runtime::report_stats(store, arguments[0], session.print), context);
  } else {
    TRY_CTX(runtime::follow_events(store, arguments[0], interval, session.print), context);
  }
  return 0;
}

}  // namespace

const Verb events_verb{
    .text = {.name = "events",
             .arguments = "ID",
             .summary = "Print resource use and OOM events, as JSON lines",
             .example = "berth-runtime events --stats web"},
    .arity = {1, 1},
    .command = [] { return make_command(events_flags, run_events); },
};

}  // namespace berth::cli::oci
