// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::cli {
namespace {

Result<int> run_cdi_validate(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& path) -> Result<void> {
    engine::CdiFileFacts facts = TRY(engine::check_cdi_file(session.context, path));
    std::string needs = facts.version == facts.needed_version
                            ? ""
                            : " (its content needs " + facts.needed_version + ")";
    print(session, path + ": good: CDI " + facts.version + needs + ", " + facts.kind + ", " +
                       std::to_string(facts.devices) +
                       (facts.devices == 1 ? " device\n" : " devices\n"));
    if (!facts.made_for.empty() && facts.made_for != facts.driver) {
      session.report.warn(path + " was made for driver " + facts.made_for + ", " +
                          (facts.driver.empty() ? "none" : facts.driver) +
                          " is loaded; try: berth cdi generate --output " + path);
    }
    return {};
  });
}

}  // namespace

const Verb cdi_validate_verb{
    .text = {.name = "cdi validate",
             .arguments = "FILE...",
             .summary = "Check CDI files against the specification",
             .example = "berth cdi validate /etc/cdi/nvidia.yaml",
             .complete = Complete::file},
    .arity = {1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_cdi_validate); },
};

}  // namespace berth::cli
