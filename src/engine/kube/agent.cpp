// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/agent.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu/list.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {
namespace {

constexpr size_t kLongestNodeToml = size_t{1} << 20;

bool overlaps_lease(const std::string& key, const gpu::Lease& lease) {
  return std::ranges::any_of(lease.keys,
                             [&](const std::string& one) { return gpu::overlaps(key, one); });
}

bool is_of_kubelet(const gpu::KnownLease& known) {
  return known.lease.engine == gpu::kKubeletEngine && known.user == 0;
}

/// "pod default/train (berth.dev/gpu)" → "berth.dev/gpu"; empty if it was not given under a name.
std::string resource_in(const std::string& holder) {
  size_t open = holder.rfind(" (");
  if (open == std::string::npos || !holder.ends_with(')')) return {};
  return holder.substr(open + 2, holder.size() - open - 3);
}

struct Held {
  std::string holder;
  std::string resource;  ///< under which a pod has it
};

/// Those that hold a GPU. What the containers of a pod hold is the pod's, if berth-node says so.
std::vector<Held> held_by(const std::string& key, const gpu::Holders& holders) {
  std::vector<Held> pods, containers, others;
  for (const gpu::KnownLease& known : holders.leases) {
    const gpu::Lease& lease = known.lease;
    if (!overlaps_lease(key, lease)) continue;
    bool in_pod = known.user == 0 && lease.engine == "berth-runtime";
    std::string holder = is_of_kubelet(known)
                             ? lease.name
                             : gpu::holder_text(lease.name, lease.container, known.user);
    std::vector<Held>& list = is_of_kubelet(known) ? pods : in_pod ? containers : others;
    list.push_back({holder, is_of_kubelet(known) ? resource_in(holder) : ""});
  }
  std::vector<Held>& all = pods.empty() ? containers : pods;
  all.insert(all.end(), others.begin(), others.end());
  return std::move(all);
}

// As kube/plugin's Cards, which knows the pods themselves.
std::string trouble_of(const std::string& resource, const std::vector<Held>& held) {
  if (held.empty() || std::ranges::find(held, resource, &Held::resource) != held.end()) return {};
  return "held by " + held.front().holder;
}

/// Whether a process listens on one of the sockets.
Result<bool> is_served(const std::string& directory, const std::vector<kube::Resource>& resources) {
  for (const kube::Resource& one : resources) {
    std::string path = directory + "/" + kube::socket_name(one.name);
    auto connected = sys::connect_unix(path, sys::SocketType::stream);
    if (connected.ok()) return true;
    if (connected.error().kind == Kind::denied) return std::move(connected).error();
  }
  return false;
}

}  // namespace

Error become_agent(const Context& context, const AgentRequest& request) {
  auto program = sys::own_program(context.paths.libexec, "berth-node", "BERTH_NODE");
  if (!program.ok()) return std::move(program).error();
  std::vector<std::string> args = {"berth-node"};
  auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    args.emplace_back(flag);
    args.push_back(value);
  };
  std::string config = request.config;
  std::string usual = context.paths.config + "/node.toml";
  auto there = sys::stat_entry(sys::cwd(), usual);
  if (config.empty() && there.ok() && *there) config = usual;
  std::string root = request.driver_root;
  if (root.empty() && context.paths.driver_root != "/") root = context.paths.driver_root;
  add("--config", config);
  add("--kubelet-dir", request.kubelet_dir);
  add("--driver-root", root);
  add("--config-dir", context.paths.config);
  add("--state", request.state_dir.empty() ? context.paths.state : request.state_dir);
  add("--cdi-dir", request.cdi_dir);
  add("--hand-over", request.hand_over);
  if (request.debug) args.emplace_back("--debug");
  return sys::execute(*program, args, context.environment.without_loader());
}

Result<std::vector<kube::Resource>> resources_of(const Context& context, const std::string& file,
                                                 const gpu::Inventory& inventory) {
  std::string path = file.empty() ? context.paths.config + "/node.toml" : file;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kLongestNodeToml));
  if (!text && file.empty()) return kube::default_resources(inventory);
  if (!text) return make_error(Kind::not_found, quote(path) + ": no such file");
  return kube::parse_resources(*text, path);
}

std::vector<OfferedUnit> offered_units(const gpu::Inventory& inventory,
                                       const std::vector<kube::Resource>& resources,
                                       const gpu::Holders& holders) {
  std::vector<OfferedUnit> units;
  for (const gpu::Selected& unit : kube::units_of(inventory)) {
    std::vector<Held> held = held_by(gpu::key_of(unit), holders);
    OfferedUnit one{gpu::index_of(unit), kube::device_id(unit, {}, 0), unit.gpu->model, {}, {}};
    for (const kube::Resource& resource : resources) {
      auto of = kube::units_of(resource, inventory);
      if (std::ranges::find(of, unit) == of.end()) continue;
      one.names.push_back({resource.name, resource.shares, trouble_of(resource.name, held)});
    }
    for (Held& holder : held) one.holders.push_back(std::move(holder.holder));
    units.push_back(std::move(one));
  }
  return units;
}

Result<NodeStatus> node_status(const Context& context, const std::string& config,
                               const std::string& kubelet_dir) {
  NodeStatus status;
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  auto resources = TRY(resources_of(context, config, inventory));
  status.synthetic = inventory.synthetic;
  status.units = offered_units(inventory, resources, TRY(list_gpu_holders(context)));
  auto served = is_served(kubelet_dir + "/device-plugins", resources);
  if (served.ok()) status.running = *served;
  return status;
}

// A name of a namespace: RFC 1123's label.
Result<json::Array> make_manifest(const Context& context, ManifestRequest request,
                                  const std::string& config) {
  const std::string& name = request.name_space;
  bool good = !name.empty() && name.size() <= 63 && !name.starts_with('-') &&
              !name.ends_with('-') && std::ranges::all_of(name, [](char c) {
                return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
              });
  if (!good) {
    return make_error(Kind::usage,
                      "expected the name of a namespace, such as berth-system, got " + quote(name));
  }
  if (request.image.empty()) return make_error(Kind::usage, "expected an image, got ''");
  if (!request.driver_root.starts_with('/')) {
    return make_error(Kind::usage, "expected an absolute path, got " + quote(request.driver_root));
  }
  request.resources = general_resources();
  if (!config.empty()) {
    for (kube::Resource& one : TRY(resources_of(context, config, {}))) {
      auto same = std::ranges::find(request.resources, one.name, &kube::Resource::name);
      if (same != request.resources.end()) {
        *same = std::move(one);
      } else {
        request.resources.push_back(std::move(one));
      }
    }
  }
  return node_manifest(request);
}

Result<void> write_nfd_file(const NodeLabels& labels, const std::string& path) {
  return sys::replace_file(sys::cwd(), path, nfd_feature_file(labels), 0644);
}

}  // namespace berth::engine
