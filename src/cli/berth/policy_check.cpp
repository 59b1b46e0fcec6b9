// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/policy.hpp"

namespace berth::cli {
namespace {

struct Options {};

FlagTable flags(Options&) {
  return {};
}

Result<int> run(Session& session, const Options&, std::vector<std::string> arguments) {
  std::vector<Error> faults = TRY(engine::check_policy(session.context, arguments));
  for (const Error& fault : faults) session.report.error(fault);
  return faults.empty() ? 0 : 1;
}

}  // namespace

extern const Verb policy_check_verb;
const Verb policy_check_verb{
    .text = {.name = "policy check",
             .arguments = "[FILE]",
             .summary = "Say all that is wrong with a policy.toml",
             .example = "berth policy check policy.toml",
             .complete = Complete::file},
    .arity = {0, 1},
    .store = Store::none,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
