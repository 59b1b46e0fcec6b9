// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

struct Options {
  engine::LogOptions log;
  bool timestamps = false;
};

FlagTable flags(Options& o) {
  ReadValue read_tail = [&o](std::string_view text) -> Result<void> {
    o.log.tail = parse_u64(text);
    if (!o.log.tail && text != "all") return make_error(Kind::usage, "expected a number or 'all'");
    return {};
  };
  return {
      {"follow", 'f', "", "Go on until the container ends", &o.log.follow},
      {"tail", 'n', "NUMBER", "The last lines only", std::move(read_tail)},
      {"timestamps", 't', "", "Put the time before each line", &o.timestamps},
  };
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  auto show = [&](const engine::LogPiece& piece) {
    Stream stream = piece.stream == engine::Stream::out ? Stream::out : Stream::err;
    session.terminal.write(stream, o.timestamps ? piece.time + " " + piece.text : piece.text);
  };
  TRY(engine::container_logs(session.context, arguments[0], o.log, show));
  return 0;
}

}  // namespace

extern const Verb logs_verb;
const Verb logs_verb{
    .text = {.name = "logs",
             .arguments = "CONTAINER",
             .summary = "Show what a detached container has written",
             .example = "berth logs --follow web",
             .complete = Complete::container},
    .arity = {1, 1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
