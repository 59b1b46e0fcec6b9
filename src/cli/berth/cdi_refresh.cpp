// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::cli {
namespace {

Result<int> run_cdi_refresh(Session& session, const NoOptions&, Arguments) {
  engine::RefreshedCdi refreshed = TRY(engine::refresh_cdi(session.context));
  for (const gpu::cdi::Fault& fault : refreshed.index.bad_files) {
    session.report.warn(fault.text + ", ignoring this file");
  }
  for (const gpu::cdi::Fault& fault : refreshed.index.unavailable) {
    session.report.warn("'" + fault.object + "' cannot be given: " + fault.text);
  }
  size_t count = refreshed.index.devices.size();
  print(session,
        refreshed.path + ": " + std::to_string(count) + (count == 1 ? " device\n" : " devices\n"));
  return 0;
}

}  // namespace

const Verb cdi_refresh_verb{
    .text = {.name = "cdi refresh",
             .summary = "Update the index of CDI devices that berth-runtime reads",
             .example = "berth cdi refresh"},
    .command = [] { return make_command(no_flags, run_cdi_refresh); },
};

}  // namespace berth::cli
