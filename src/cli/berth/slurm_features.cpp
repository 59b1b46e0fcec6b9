// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/slurm/slurm.hpp"

namespace berth::cli {
namespace {

struct SlurmFeaturesOptions {
  engine::SlurmRequest request;
  std::string format = "text";
};

FlagTable slurm_features_flags(SlurmFeaturesOptions& o) {
  return {
      file_flag("profile", 0, "Use a saved profile instead of this machine", &o.request.profile),
      {"node", 0, "NAME", "NodeName, or 'n[1-8]' for identical nodes", &o.request.name},
      {"gres-conf", 0, "", "Print the lines for gres.conf instead", &o.request.devices},
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
  };
}

json::Value to_json(const engine::SlurmNode& node, bool devices_known) {
  json::Array gres, devices;
  for (const engine::SlurmGres& one : node.gres) {
    gres.push_back(json::Object{{"type", one.type}, {"count", one.count}});
  }
  for (const engine::SlurmDevice& one : node.devices) {
    devices.push_back(
        json::Object{{"type", one.type}, {"files", json_strings(one.files)}, {"cores", one.cores}});
  }
  json::Value gres_conf;  // null: it was not asked for
  if (devices_known) gres_conf = std::move(devices);
  return json::Object{{"node", node.name},
                      {"features", json_strings(node.features)},
                      {"gres", std::move(gres)},
                      {"gres_conf", std::move(gres_conf)},
                      {"synthetic", node.synthetic}};
}

Result<int> run_slurm_features(Session& session, const SlurmFeaturesOptions& o, Arguments) {
  engine::SlurmNode node = TRY(engine::slurm_node(session.context, o.request));
  if (o.format == "json") {
    print_json(session, to_json(node, o.request.devices));
    return 0;
  }
  if (node.synthetic) print(session, "# GPUs of a tree made for tests\n");
  print(session, o.request.devices ? gres_conf_lines(node) : slurm_conf_line(node));
  return 0;
}

}  // namespace

const Verb slurm_features_verb{
    .text = {.name = "slurm features",
             .summary = "Print the slurm.conf or gres.conf lines for a node",
             .example = "berth slurm features --gres-conf"},
    .command = [] { return make_command(slurm_features_flags, run_slurm_features); },
};

}  // namespace berth::cli
