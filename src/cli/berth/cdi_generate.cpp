// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/context/paths.hpp"
#include "engine/gpu/cdi.hpp"

namespace berth::cli {
namespace {

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

}  // namespace

const Verb cdi_generate_verb{
    .text = {.name = "cdi generate",
             .summary = "Generate a CDI file of this machine's GPUs for other engines",
             .example = "berth cdi generate --output /etc/cdi/nvidia.yaml"},
    .command = [] { return make_command(cdi_generate_flags, run_cdi_generate); },
};

}  // namespace berth::cli
