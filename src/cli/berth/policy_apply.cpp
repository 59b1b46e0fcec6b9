// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/system/policy.hpp"

namespace berth::cli {
namespace {

Result<int> run_policy_apply(Session& session, const NoOptions&, Arguments) {
  print(session, TRY(engine::apply_policy(session.context)) + "\n");
  return 0;
}

}  // namespace

const Verb policy_apply_verb{
    .text = {.name = "policy apply",
             .summary = "Put the site's policy.toml into force",
             .example = "berth policy apply"},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_apply); },
};

}  // namespace berth::cli
