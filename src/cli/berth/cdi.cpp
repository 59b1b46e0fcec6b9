// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/cdi.hpp"

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/context/paths.hpp"

namespace berth::cli {
namespace {

// ---- cdi generate -------------------------------------------------------------------------------

struct CdiGenerateOptions {
  engine::CdiGenerateRequest request;
  std::optional<std::string> output;
  std::optional<std::string> format;
};

FlagTable cdi_generate_flags(CdiGenerateOptions& o) {
  return {
      choice_flag("vendor", "VENDOR", "GPU vendor: nvidia, amd or intel", &o.request.vendor,
                  {"nvidia", "amd", "intel"}),
      file_flag("output", 'o', "Write to FILE, such as /etc/cdi/nvidia.yaml", &o.output),
      choice_flag("format", "FORMAT", "json or yaml (by the ending of FILE, else yaml)", &o.format,
                  {"json", "yaml"}),
      {"cdi-version", 0, "VERSION", "CDI version to declare (the lowest that the content needs)",
       &o.request.version},
      {"device-name-strategy", 0, "STRATEGY",
       "Name devices by index, uuid or type-index (index and uuid)", &o.request.name_strategies},
      {"class", 0, "CLASS", "Class of the devices (gpu)", &o.request.device_class},
  };
}

Result<int> run_cdi_generate(Session& session, const CdiGenerateOptions& o, Arguments) {
  engine::CdiGenerateRequest request = o.request;
  if (o.output) {
    request.output = TRY(engine::absolute_path(*o.output, session.working_directory));
    if (o.output->ends_with(".json")) request.format = "json";
  }
  if (o.format) request.format = *o.format;
  std::string text = TRY(engine::generate_cdi(session.context, request));
  if (!o.output) print(session, text);
  return 0;
}

void warn_of_faults(Session& session, const gpu::cdi::Index& index) {
  for (const gpu::cdi::Fault& fault : index.bad_files) {
    session.report.warn(fault.text + ", ignoring this file");
  }
  for (const gpu::cdi::Fault& fault : index.unavailable) {
    session.report.warn("'" + fault.object + "' cannot be given: " + fault.text);
  }
}

std::string devices_words(size_t count) {
  return std::to_string(count) + (count == 1 ? " device\n" : " devices\n");
}

// ---- cdi list -----------------------------------------------------------------------------------

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
  warn_of_faults(session, index);
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

// ---- cdi inspect --------------------------------------------------------------------------------

Result<int> run_cdi_inspect(Session& session, const NoOptions&, Arguments arguments) {
  print_json(session, TRY(engine::inspect_cdi(session.context, arguments[0])));
  return 0;
}

// ---- cdi validate -------------------------------------------------------------------------------

Result<int> run_cdi_validate(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& path) -> Result<void> {
    engine::CdiFileFacts facts = TRY(engine::check_cdi_file(session.context, path));
    std::string needs = facts.version == facts.needed_version
                            ? ""
                            : " (its content needs " + facts.needed_version + ")";
    print(session, path + ": good: CDI " + facts.version + needs + ", " + facts.kind + ", " +
                       devices_words(facts.devices));
    if (!facts.made_for.empty() && facts.made_for != facts.driver) {
      session.report.warn(path + " was made for driver " + facts.made_for + ", " +
                          (facts.driver.empty() ? "none" : facts.driver) +
                          " is loaded; try: berth cdi generate --output " + path);
    }
    return {};
  });
}

// ---- cdi refresh --------------------------------------------------------------------------------

Result<int> run_cdi_refresh(Session& session, const NoOptions&, Arguments) {
  engine::RefreshedCdi refreshed = TRY(engine::refresh_cdi(session.context));
  warn_of_faults(session, refreshed.index);
  print(session, refreshed.path + ": " + devices_words(refreshed.index.devices.size()));
  return 0;
}

}  // namespace

const Verb cdi_generate_verb{
    .text = {.name = "cdi generate",
             .summary = "Generate a CDI file of this machine's GPUs for other engines",
             .example = "berth cdi generate --output /etc/cdi/nvidia.yaml"},
    .command = [] { return make_command(cdi_generate_flags, run_cdi_generate); },
};
const Verb cdi_list_verb{
    .text = {.name = "cdi list",
             .summary = "List the devices in this machine's CDI files",
             .example = "berth cdi list --quiet"},
    .store = Store::none,
    .command = [] { return make_command(cdi_list_flags, run_cdi_list); },
};
const Verb cdi_inspect_verb{
    .text = {.name = "cdi inspect",
             .arguments = "NAME",
             .summary = "Show everything that a CDI device adds to a container",
             .example = "berth cdi inspect nvidia.com/gpu=0"},
    .arity = {1, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_cdi_inspect); },
};
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
const Verb cdi_refresh_verb{
    .text = {.name = "cdi refresh",
             .summary = "Update the index of CDI devices that berth-runtime reads",
             .example = "berth cdi refresh"},
    .command = [] { return make_command(no_flags, run_cdi_refresh); },
};

}  // namespace berth::cli
