// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/gpus.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

struct Options {
  bool refresh = false;
  bool quiet = false;
  std::string format = "table";
};

FlagTable flags(Options& o) {
  return {
      {"refresh", 0, "", "Ask the driver again instead of the cache", &o.refresh},
      {"quiet", 'q', "", "Show UUIDs alone", &o.quiet},
      format_flag(o.format),
  };
}

std::string node_names(const gpu::Gpu& gpu) {
  std::vector<std::string> names{gpu.node.path};
  for (const gpu::Node& node : gpu.drm_nodes) names.push_back(node.path);
  return join(names, " ");
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string table_of(const gpu::Inventory& inventory) {
  Table table(
      {"INDEX", "UUID", "PCI ADDRESS", "MODEL", "COMPUTE", "MEMORY", "DRIVER", "CUDA", "NODES"});
  std::string driver = or_dash(inventory.driver.module_version);
  std::string cuda = or_dash(inventory.driver.cuda_version);
  for (const gpu::Gpu& gpu : inventory.gpus) {
    table.add({std::to_string(gpu.index), or_dash(gpu.uuid), gpu.pci_address, or_dash(gpu.model),
               gpu.compute_capability.value_or("-"),
               gpu.memory_bytes ? human_bytes(*gpu.memory_bytes) : "-", driver, cuda,
               node_names(gpu)});
    for (const gpu::MigDevice& mig : gpu.mig) {
      std::vector<std::string> nodes;
      for (const gpu::Node& node : mig.nodes) nodes.push_back(node.path);
      table.add({std::to_string(gpu.index) + ":" + std::to_string(mig.index), or_dash(mig.uuid),
                 gpu.pci_address, mig.profile.empty() ? "MIG" : "MIG " + mig.profile, "",
                 mig.memory_bytes ? human_bytes(*mig.memory_bytes) : "-", "", "",
                 join(nodes, " ")});
    }
  }
  return table.text();
}

json::Value to_json(const gpu::Inventory& inventory) {
  json::Array gpus;
  for (const gpu::Gpu& gpu : inventory.gpus) gpus.push_back(json::to_value(gpu));
  return json::Object{{"synthetic", inventory.synthetic},
                      {"driver_root", inventory.driver_root},
                      {"driver", json::to_value(inventory.driver)},
                      {"nvml", inventory.nvml},
                      {"gpus", std::move(gpus)},
                      {"problems", json_strings(inventory.problems)}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string>) {
  gpu::Inventory inventory = TRY(engine::list_gpus(
      session.context, o.refresh ? gpu::Refresh::always : gpu::Refresh::if_stale));
  if (o.format == "json") {
    print_json(session, to_json(inventory));
    return 0;
  }
  for (const std::string& problem : inventory.problems) session.report.warn(problem);
  std::string note = "synthetic: read from " + quoted(inventory.driver_root) + ", made for tests\n";
  if (o.quiet) {
    if (inventory.synthetic) session.terminal.write(Stream::err, note);
    for (const gpu::Gpu& gpu : inventory.gpus) print(session, gpu.uuid + "\n");
    return 0;
  }
  print(session, table_of(inventory));
  if (inventory.synthetic) print(session, note);
  return 0;
}

}  // namespace

extern const Verb gpu_list_verb;
const Verb gpu_list_verb{
    .text = {.name = "gpu list",
             .arguments = "",
             .summary = "List the GPUs of this machine",
             .example = "berth gpu list --format json"},
    .arity = {0, 0},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
