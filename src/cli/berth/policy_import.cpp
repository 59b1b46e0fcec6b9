// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/policy.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string> arguments) {
  if (arguments[0] != "nvidia-container-runtime") {
    return make_error(Kind::usage, "no configuration " + quoted(arguments[0]) + " can be imported",
                      "nvidia-container-runtime");
  }
  print(session, TRY(engine::import_policy(arguments[1])));
  return 0;
}

}  // namespace

extern const Verb policy_import_verb;
const Verb policy_import_verb{
    .text = {.name = "policy import",
             .arguments = "nvidia-container-runtime FILE",
             .summary = "Print the policy.toml that does what another program's configuration does",
             .example = "berth policy import nvidia-container-runtime "
                        "/etc/nvidia-container-runtime/config.toml",
             .complete = Complete::file},
    .arity = {2, 2},
    .store = Store::none,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
