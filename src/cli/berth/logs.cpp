// SPDX-License-Identifier: Apache-2.0
#include "engine/container/logs.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct LogsOptions {
  engine::LogOptions log;
  bool timestamps = false;
  bool details = false;
};

FlagTable logs_flags(LogsOptions& o) {
  ReadValue read_tail = [&o](std::string_view text) -> Result<void> {
    o.log.tail = parse_u64(text);
    // Docker takes every negative number for "all".
    bool all = text == "all" || (text.starts_with('-') && parse_u64(text.substr(1)));
    if (!o.log.tail && !all) return make_error(Kind::usage, "expected a number or 'all'");
    return {};
  };
  return {
      {"details", 0, "", "No effect: Berth's logs have no extra details", &o.details},
      {"follow", 'f', "", "Follow the output until the container exits", &o.log.follow},
      {"since", 0, "TIME", "Show output since a time, or since a duration such as 10m ago",
       read_moment(o.log.since_ns)},
      {"tail", 'n', "NUMBER", "Show only the last NUMBER lines", std::move(read_tail)},
      {"timestamps", 't', "", "Show the time of each line", &o.timestamps},
      {"until", 0, "TIME", "Show output before a time, or before a duration such as 10m ago",
       read_moment(o.log.until_ns)},
  };
}

Result<int> run_logs(Session& session, const LogsOptions& o, Arguments arguments) {
  std::string line;
  auto show = [&](const engine::LogPiece& piece) {
    Stream stream = piece.stream == engine::Stream::out ? Stream::out : Stream::err;
    if (!o.timestamps && !o.details) return session.terminal.write_as_is(stream, piece.text);
    line.clear();
    if (o.timestamps) line += piece.time() + " ";
    if (o.details) line += ' ';
    session.terminal.write_as_is(stream, line.append(piece.text));
  };
  TRY(engine::container_logs(session.context, arguments[0], o.log, show));
  return 0;
}

/// Flags of podman and enroot.
constexpr Elsewhere kLogsElsewhere[] = {
    {"l", "berth logs $(berth ps -lq)"},
    {"latest", "berth logs $(berth ps -lq)"},
};

}  // namespace

const Verb logs_verb{
    .text = {.name = "logs",
             .arguments = "CONTAINER",
             .summary = "Show the logs of a container",
             .example = "berth logs --follow --tail 100 web",
             .complete = Complete::container},
    .arity = {1, 1},
    .elsewhere = kLogsElsewhere,
    .command = [] { return make_command(logs_flags, run_logs); },
};

}  // namespace berth::cli
