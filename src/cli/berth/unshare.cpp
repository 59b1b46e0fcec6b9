// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/image/mounted.hpp"

namespace berth::cli {
namespace {

Result<int> unshare(Session& session, const NoOptions&, Arguments arguments) {
  constexpr int kOwnError = 125;
  auto gone = engine::run_unshared(session.context, arguments);
  if (gone.ok()) return 0;
  session.report.error(gone.error());
  bool command = !arguments.empty() && gone.error().kind != Kind::usage;
  return command ? command_status(gone.error()) : kOwnError;
}

}  // namespace

const Verb unshare_verb{
    .text = {.name = "unshare",
             .arguments = "[COMMAND] [ARG...]",
             .summary =
                 "Run a command, or a shell, in the user namespace of this user's containers",
             .example = "berth unshare sh -c 'berth image mount debian:12 /mnt; ls /mnt'"},
    .arity = {0},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .error_status = 125,
    .command = [] { return make_command(no_flags, unshare); },
};

}  // namespace berth::cli
