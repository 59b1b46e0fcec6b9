// SPDX-License-Identifier: Apache-2.0
// `berth node` for nodes of Kubernetes.
#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "engine/kube/agent.hpp"
#include "engine/kube/labels.hpp"
#include "engine/kube/manifest.hpp"
#include "engine/kube/setup.hpp"
#include "engine/node/node.hpp"

namespace berth::cli {
namespace {

// ---- node run -----------------------------------------------------------------------------------

FlagTable node_run_flags(engine::AgentRequest& o) {
  return {
      file_flag("config", 0, "The resources to offer (node.toml in --config-dir)", &o.config),
      directory_flag("kubelet-dir", 0, "The kubelet's directory (/var/lib/kubelet)",
                     &o.kubelet_dir),
      directory_flag("driver-root", 0, "Look for GPU drivers below this directory", &o.driver_root),
      directory_flag("state", 0, "Directory of the GPU inventory", &o.state_dir),
      directory_flag("cdi-dir", 0, "Write CDI files here (/var/run/cdi)", &o.cdi_dir),
      choice_flag("hand-over", "HOW", "How containers get their GPUs: cdi, annotations or both",
                  &o.hand_over, {"cdi", "annotations", "both"}),
      {"debug", 0, "", "Print what is done", &o.debug},
  };
}

Result<int> run_node_run(Session& session, const engine::AgentRequest& o, Arguments) {
  return engine::become_agent(session.context, o);
}

// ---- node status --------------------------------------------------------------------------------

struct NodeStatusOptions {
  std::string config;
  std::string kubelet_dir = engine::kKubeletDirectory;
  std::string format = "table";
};

FlagTable node_status_flags(NodeStatusOptions& o) {
  return {
      file_flag("config", 0, "The resources to offer (node.toml in --config-dir)", &o.config),
      directory_flag("kubelet-dir", 0, "The kubelet's directory (/var/lib/kubelet)",
                     &o.kubelet_dir),
      format_flag(o.format),
  };
}

json::Value to_json(const engine::OfferedUnit& unit) {
  json::Array names;
  for (const engine::OfferedName& one : unit.names) {
    json::Value reason;  // null: healthy
    if (!one.trouble.empty()) reason = one.trouble;
    names.push_back(json::Object{{"name", one.resource},
                                 {"devices", int64_t{one.devices}},
                                 {"health", one.trouble.empty() ? "Healthy" : "Unhealthy"},
                                 {"reason", std::move(reason)}});
  }
  return json::Object{{"index", unit.index},
                      {"id", unit.id},
                      {"model", unit.model},
                      {"names", std::move(names)},
                      {"held_by", json_strings(unit.holders)}};
}

json::Value to_json(const engine::NodeStatus& status) {
  json::Array gpus;
  for (const engine::OfferedUnit& one : status.units) gpus.push_back(to_json(one));
  json::Value running;  // null: unknown
  if (status.running) running = *status.running;
  return json::Object{
      {"running", std::move(running)}, {"synthetic", status.synthetic}, {"gpus", std::move(gpus)}};
}

/// "Healthy", "Unhealthy", "Unhealthy except as berth.dev/gpu".
std::string health_of(const engine::OfferedUnit& unit) {
  std::vector<std::string> healthy;
  for (const engine::OfferedName& one : unit.names) {
    if (one.trouble.empty()) healthy.push_back(one.resource);
  }
  if (unit.names.empty()) return "not offered";
  if (healthy.size() == unit.names.size()) return "Healthy";
  return healthy.empty() ? "Unhealthy" : "Unhealthy except as " + join(healthy, ", ");
}

std::string name_words(const engine::OfferedUnit& unit) {
  std::vector<std::string> words;
  for (const engine::OfferedName& one : unit.names) {
    words.push_back(one.devices == 1 ? one.resource
                                     : one.resource + " × " + std::to_string(one.devices));
  }
  return words.empty() ? "-" : join(words, " ");
}

Result<int> run_node_status(Session& session, const NodeStatusOptions& o, Arguments) {
  engine::NodeStatus status = TRY(engine::node_status(session.context, o.config, o.kubelet_dir));
  if (o.format == "json") {
    print_json(session, to_json(status));
    return 0;
  }
  Table table({"GPU", "ID", "MODEL", "HEALTH", "HELD BY", "NAMES"});
  for (const engine::OfferedUnit& one : status.units) {
    table.add({one.index, one.id, one.model.empty() ? "-" : one.model, health_of(one),
               one.holders.empty() ? "-" : join(one.holders, ", "), name_words(one)});
  }
  print(session, table.text());
  if (status.synthetic) print(session, "synthetic: GPUs of a tree made for tests\n");
  if (!status.running) {
    session.report.warn("cannot tell whether berth-node runs; only root can");
  } else if (!*status.running) {
    session.report.warn("berth-node does not run: no pod can get a GPU; try: berth node run");
  }
  return 0;
}

// ---- node labels --------------------------------------------------------------------------------

struct NodeLabelsOptions {
  std::optional<std::string> node;
  std::string nfd;
  std::string format = "text";
};

FlagTable node_labels_flags(NodeLabelsOptions& o) {
  return {
      file_flag("node", 0, "Use a saved profile instead of this machine", &o.node),
      file_flag("nfd", 0, "Write a feature file of Node Feature Discovery instead", &o.nfd),
      choice_flag("format", "FORMAT", "Output format: text or json", &o.format, {"text", "json"}),
  };
}

Result<int> run_node_labels(Session& session, const NodeLabelsOptions& o, Arguments) {
  engine::NodeLabels labels = engine::node_labels(TRY(engine::node_of(session.context, o.node)));
  if (!o.nfd.empty()) {
    TRY(engine::write_nfd_file(labels, o.nfd));
    return 0;
  }
  if (o.format == "json") {
    json::Object out;
    for (const auto& [name, value] : labels) out.emplace_back(name, value);
    print_json(session, json::Object{{"labels", std::move(out)}});
    return 0;
  }
  std::string text;
  for (const auto& [name, value] : labels) text += name + "=" + value + "\n";
  print(session, text);
  return 0;
}

// ---- node manifest ------------------------------------------------------------------------------

struct NodeManifestOptions {
  engine::ManifestRequest request;
  std::string config;
  std::string format = "yaml";
};

FlagTable node_manifest_flags(NodeManifestOptions& o) {
  engine::ManifestRequest& r = o.request;
  r.image = "localhost/berth-node:" + std::string(berth_version());
  r.name_space = "berth-system";
  return {
      {"image", 0, "IMAGE", "Image with Berth's programs in /usr/bin (localhost/berth-node)",
       &r.image},
      {"namespace", 0, "NAME", "Namespace of berth-node (berth-system)", &r.name_space},
      directory_flag("driver-root", 0, "Where the nodes have their GPU drivers (/)",
                     &r.driver_root),
      file_flag("config", 0, "Also make a DeviceClass for each resource of this node.toml",
                &o.config),
      {"plugin-only", 0, "", "Leave out what Kubernetes before 1.34 does not know", &r.plugin_only},
      choice_flag("format", "FORMAT", "Output format: yaml or json", &o.format, {"yaml", "json"}),
  };
}

Result<int> run_node_manifest(Session& session, const NodeManifestOptions& o, Arguments) {
  json::Array objects = TRY(engine::make_manifest(session.context, o.request, o.config));
  if (o.format == "yaml") {
    print(session, engine::manifest_yaml(objects));
    return 0;
  }
  print_json(session,
             json::Object{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(objects)}});
  return 0;
}

// ---- node setup ---------------------------------------------------------------------------------

struct NodeSetupOptions {
  engine::SetupRequest request;
  bool containerd = false;
  bool crio = false;
};

FlagTable node_setup_flags(NodeSetupOptions& o) {
  engine::SetupRequest& r = o.request;
  return {
      {"containerd", 0, "", "Add the runtime 'berth' to containerd", &o.containerd},
      {"crio", 0, "", "Add the runtime 'berth' to CRI-O", &o.crio},
      directory_flag("root", 0, "Root directory of the node whose files are written (/)", &r.root),
      file_flag("runtime", 0, "berth-runtime on the node (next to berth)", &r.program),
      {"hub", 0, "URL", "Pull images through this hub of `berth hub`", &r.hub},
      {"registry", 0, "NAME", "Registry whose images the hub serves (containerd: every one)",
       &r.registry},
      {"dry-run", 0, "", "Print the files instead of writing them", &r.dry_run},
      {"remove", 0, "", "Remove the files that an earlier setup wrote", &r.remove},
  };
}

std::string unit_of(engine::NodeRuntime runtime) {
  return runtime == engine::NodeRuntime::crio ? "systemctl reload crio"
                                              : "systemctl restart containerd";
}

void print_done(Session& session, const engine::SetupRequest& request,
                const engine::SetupDone& done) {
  if (request.dry_run && !request.remove) {
    std::string text;
    for (const engine::SetupFile& file : done.plan.files) {
      text += "# " + file.path + "\n" + file.text + "\n";
    }
    print(session, text);
  }
  const char* words = request.remove ? "removed " : "wrote ";
  if (request.dry_run) words = request.remove ? "would remove " : "would write ";
  for (const std::string& one : done.changed) print(session, words + one + "\n");
  if (done.changed.empty()) print(session, "nothing to change\n");
  if (done.restart) {
    print(session, "to take effect: " + unit_of(request.runtime) + "\n");
  }
}

Result<int> run_node_setup(Session& session, const NodeSetupOptions& o, Arguments) {
  if (o.containerd == o.crio) {
    return make_error(Kind::usage, "expected one of --containerd and --crio");
  }
  engine::SetupRequest request = o.request;
  request.runtime = o.crio ? engine::NodeRuntime::crio : engine::NodeRuntime::containerd;
  engine::SetupDone done = TRY(engine::set_up_node(session.context, request));
  if (done.plan.lines.empty()) {
    print_done(session, request, done);
    return 0;
  }
  print(session, done.plan.lines);
  return make_error(
      Kind::unsupported, done.plan.why,
      "add the lines above to " + done.plan.main_file + ", then " + unit_of(request.runtime));
}

}  // namespace

const Verb node_run_verb{
    .text = {.name = "node run",
             .summary = "Offer this node's GPUs to the kubelet, until it is stopped",
             .example = "berth node run --config /etc/berth/node.toml"},
    .store = Store::none,
    .command = [] { return make_command(node_run_flags, run_node_run); },
};
const Verb node_status_verb{
    .text = {.name = "node status",
             .summary = "Show the GPUs that this node offers to pods, and which pod has which",
             .example = "berth node status --format json"},
    .command = [] { return make_command(node_status_flags, run_node_status); },
};
const Verb node_labels_verb{
    .text = {.name = "node labels",
             .summary = "Print the profile of this machine as labels of a Kubernetes node",
             .example = "kubectl label --overwrite node $(hostname) $(berth node labels)"},
    .store = Store::none,
    .command = [] { return make_command(node_labels_flags, run_node_labels); },
};
const Verb node_manifest_verb{
    .text = {.name = "node manifest",
             .summary = "Print the objects that install berth-node in a Kubernetes cluster",
             .example = "berth node manifest --image registry.example.org/berth-node | "
                        "kubectl apply -f -"},
    .store = Store::none,
    .command = [] { return make_command(node_manifest_flags, run_node_manifest); },
};
const Verb node_setup_verb{
    .text = {.name = "node setup",
             .summary = "Configure containerd or CRI-O on this node for the runtime 'berth'",
             .example = "berth node setup --containerd --dry-run"},
    .store = Store::none,
    .command = [] { return make_command(node_setup_flags, run_node_setup); },
};

}  // namespace berth::cli
