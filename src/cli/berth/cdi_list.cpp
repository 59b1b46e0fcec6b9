// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::cli {
namespace {

struct CdiListOptions {
  bool quiet = false;
  std::string format = "table";
};

FlagTable cdi_list_flags(CdiListOptions& o) {
  return {
      {"quiet", 'q', "", "Show only names", &o.quiet},
      format_flag(o.format),
  };
}

json::Array to_json(const std::vector<gpu::cdi::Fault>& faults, const char* name) {
  json::Array list;
  for (const gpu::cdi::Fault& fault : faults) {
    list.push_back(json::Object{{name, fault.object}, {"error", fault.text}});
  }
  return list;
}

json::Value to_json(const gpu::cdi::Index& index) {
  json::Array devices;
  for (const gpu::cdi::IndexDevice& device : index.devices) {
    devices.push_back(
        json::Object{{"name", device.name}, {"file", index.files.at(device.file).path}});
  }
  return json::Object{{"directories", json_strings(index.directories)},
                      {"devices", std::move(devices)},
                      {"unavailable", to_json(index.unavailable, "name")},
                      {"bad_files", to_json(index.bad_files, "file")}};
}

Result<int> run_cdi_list(Session& session, const CdiListOptions& o, Arguments) {
  gpu::cdi::Index index = TRY(engine::list_cdi(session.context));
  if (o.format == "json") {
    print_json(session, to_json(index));
    return 0;
  }
  for (const gpu::cdi::Fault& fault : index.bad_files) {
    session.report.warn(fault.text + ", ignoring this file");
  }
  for (const gpu::cdi::Fault& fault : index.unavailable) {
    session.report.warn("'" + fault.object + "' cannot be given: " + fault.text);
  }
  if (index.devices.empty() && index.bad_files.empty() && index.unavailable.empty()) {
    session.report.warn("no file in " + join(index.directories, ", ") +
                        " offers a device; see 'berth cdi generate --help'");
  }
  Table table({"NAME", "FILE"});
  for (const gpu::cdi::IndexDevice& device : index.devices) {
    if (o.quiet) print(session, device.name + "\n");
    table.add({device.name, index.files.at(device.file).path});
  }
  if (!o.quiet) print(session, table.text());
  return 0;
}

}  // namespace

const Verb cdi_list_verb{
    .text = {.name = "cdi list",
             .summary = "List the devices in this machine's CDI files",
             .example = "berth cdi list --quiet"},
    .store = Store::none,
    .command = [] { return make_command(cdi_list_flags, run_cdi_list); },
};

}  // namespace berth::cli
