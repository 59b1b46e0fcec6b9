// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/system/policy.hpp"

namespace berth::cli {
namespace {

Result<int> run_policy_lint(Session& session, const NoOptions&, Arguments arguments) {
  std::vector<Error> faults = TRY(engine::check_policy(session.context, arguments));
  for (const Error& fault : faults) session.report.error(fault);
  return faults.empty() ? 0 : 1;
}

}  // namespace

const Verb policy_lint_verb{
    .text = {.name = "policy lint",
             .arguments = "[FILE...]",
             .summary = "Check the site policy, or the given files, for errors",
             .example = "berth policy lint policy.d/10-scratch.toml",
             .complete = Complete::file},
    .arity = {},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_lint); },
};

}  // namespace berth::cli
