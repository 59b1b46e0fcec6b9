// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

Result<int> run_logout(Session& session, const NoOptions&, Arguments arguments) {
  image::LogoutRequest request;
  request.registry = arguments.empty() ? "" : arguments[0];
  image::TransferResult result =
      TRY(transfer_shown(session, std::move(request), Stream::err, Direction::pull, false));
  print(session, result.status + "\n");
  return 0;
}

}  // namespace

const Verb logout_verb{
    .text = {.name = "logout",
             .arguments = "[REGISTRY]",
             .summary = "Log out of a registry",
             .example = "berth logout registry.example.org"},
    .arity = {0, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_logout); },
};

}  // namespace berth::cli
