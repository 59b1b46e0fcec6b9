// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::chrono::seconds grace = 10s;
};

FlagTable flags(Options& o) {
  ReadValue read_grace = [&o](std::string_view text) -> Result<void> {
    std::optional<int64_t> seconds;
    TRY(read_integer(seconds)(text));
    if (*seconds < -1 || *seconds > 1'000'000) {
      return make_error(Kind::usage, "expected seconds, or -1 to wait for ever");
    }
    o.grace = *seconds == -1 ? std::chrono::hours(24 * 365) : std::chrono::seconds(*seconds);
    return {};
  };
  return {{"time", 't', "SECONDS", "Kill after this long (10); -1: never", std::move(read_grace)}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::stop_container(session.context, name, o.grace));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

extern const Verb stop_verb;
const Verb stop_verb{
    .text = {.name = "stop",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Ask containers to end, and kill those that do not",
             .example = "berth stop --time 30 web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
