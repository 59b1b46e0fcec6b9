// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/run/start.hpp"
#include "engine/state/outcome.hpp"

namespace berth::cli {
namespace {

struct AttachOptions {
  bool no_stdin = false;
  bool signal_proxy = true;
  std::optional<std::string> detach_keys;
};

FlagTable attach_flags(AttachOptions& o) {
  return {
      {"no-stdin", 0, "", "Do not attach stdin", &o.no_stdin},
      {"sig-proxy", 0, "", "Forward received signals to the container (true)", &o.signal_proxy},
      detach_keys_flag(o.detach_keys),
  };
}

Result<int> run_attach(Session& session, const AttachOptions& o, Arguments arguments) {
  engine::AttachRequest request{!o.no_stdin, o.signal_proxy, o.detach_keys};
  engine::RunOutcome outcome =
      TRY(engine::attach_container(session.context, arguments[0], request));
  if (outcome.stream_error) session.report.error(*outcome.stream_error);
  print_detached(session, outcome);
  print_reason(session, outcome);
  return outcome.status;
}

}  // namespace

const Verb attach_verb{
    .text = {.name = "attach",
             .arguments = "CONTAINER",
             .summary = "Attach the terminal to a running container",
             .example = "berth attach web",
             .complete = Complete::running},
    .arity = {1, 1},
    .command = [] { return make_command(attach_flags, run_attach); },
};

}  // namespace berth::cli
