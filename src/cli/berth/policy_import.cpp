// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/system/policy.hpp"

namespace berth::cli {
namespace {

Result<engine::PolicyForm> form_of(const std::string& word) {
  if (word == "nvidia-container-runtime") return engine::PolicyForm::toolkit;
  if (word == "houdini") return engine::PolicyForm::houdini;
  return make_error(Kind::usage, "no configuration " + quote(word) + " can be imported",
                    "nvidia-container-runtime, houdini");
}

Result<int> run_policy_import(Session& session, const NoOptions&, Arguments arguments) {
  engine::PolicyForm form = engine::PolicyForm::any;
  if (arguments.size() == 2) form = TRY(form_of(arguments[0]));
  print(session, TRY(engine::import_policy(arguments.back(), form)));
  return 0;
}

}  // namespace

const Verb policy_import_verb{
    .text = {.name = "policy import",
             .arguments = "[nvidia-container-runtime|houdini] FILE",
             .summary = "Convert another program's configuration into a site policy",
             .example = "berth policy import nvidia-container-runtime "
                        "/etc/nvidia-container-runtime/config.toml",
             .complete = Complete::file},
    .arity = {1, 2},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_policy_import); },
};

}  // namespace berth::cli
