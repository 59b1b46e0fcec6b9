// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstring>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

struct Options {
  int signal = SIGKILL;
};

/// "9", "KILL", "SIGKILL", "sigkill", "RTMIN+3".
std::optional<int> signal_number(std::string_view text) {
  std::string name = to_lower(text);
  if (auto number = parse_u64(name); number && *number > 0 && *number <= 64) {
    return static_cast<int>(*number);
  }
  if (name.starts_with("sig")) name.erase(0, 3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && to_lower(known) == name) return number;
  }
  if (!name.starts_with("rtmin")) return std::nullopt;
  if (name == "rtmin") return SIGRTMIN;
  auto offset = parse_u64(std::string_view(name).substr(6));
  if (name[5] != '+' || !offset || *offset > 30) return std::nullopt;
  return SIGRTMIN + static_cast<int>(*offset);
}

FlagTable flags(Options& o) {
  ReadValue read_signal = [&o](std::string_view text) -> Result<void> {
    auto number = signal_number(text);
    if (!number) return make_error(Kind::usage, "expected a signal such as TERM or 15");
    o.signal = *number;
    return {};
  };
  return {{"signal", 's', "SIGNAL", "Send this one instead of KILL", std::move(read_signal)}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::kill_container(session.context, name, o.signal));
    print(session, name + "\n");
    return {};
  });
}

}  // namespace

extern const Verb kill_verb;
const Verb kill_verb{
    .text = {.name = "kill",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Send a signal to running containers",
             .example = "berth kill --signal HUP web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
