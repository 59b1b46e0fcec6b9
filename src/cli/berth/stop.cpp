// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"

namespace berth::cli {
namespace {

Result<int> run_stop(Session& session, const GraceOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    TRY(engine::stop_container(session.context, name, o.grace));
    print(session, name + "\n");
    return {};
  });
}

/// Flags of podman and enroot.
constexpr Elsewhere kStopElsewhere[] = {
    {"a", "berth stop $(berth ps -q)"},
    {"all", "berth stop $(berth ps -q)"},
};

}  // namespace

const Verb stop_verb{
    .text = {.name = "stop",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Stop running containers",
             .example = "berth stop --time 30 web",
             .complete = Complete::running},
    .arity = {1},
    .elsewhere = kStopElsewhere,
    .command = [] { return make_command(grace_flags, run_stop); },
};

}  // namespace berth::cli
