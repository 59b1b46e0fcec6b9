// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/container/life.hpp"
#include "engine/container/list.hpp"
#include "engine/run/start.hpp"

namespace berth::cli {
namespace {

Result<int> run_restart(Session& session, const GraceOptions& o, Arguments arguments) {
  std::vector<std::string> stopped;
  int stopping =
      for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
        TRY(engine::stop_container(session.context, name, o.grace));
        stopped.push_back(name);
        return {};
      });
  if (stopped.empty()) return stopping;
  // A process in one user namespace cannot signal processes in another.
  engine::Context inside = session.context;
  auto beside = engine::process_of(inside.paths, stopped[0], session.report);
  if (beside) {
    inside.identity = TRY(engine::join_user_namespace(*beside));
  } else if (auto among = TRY(engine::join_network_users(inside, {.containers = stopped}))) {
    inside.identity = *among;
  } else {
    inside.identity = TRY(engine::enter_identity(engine::Needs::user_namespace, session.report));
  }
  int starting = for_each_argument(session, stopped, [&](const std::string& name) -> Result<void> {
    TRY(engine::start_again(inside, name));
    print(session, name + "\n");
    return {};
  });
  return std::max(stopping, starting);
}

}  // namespace

const Verb restart_verb{
    .text = {.name = "restart",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Restart containers",
             .example = "berth restart --time 30 web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(grace_flags, run_restart); },
};

}  // namespace berth::cli
