// SPDX-License-Identifier: Apache-2.0
// Use cases of `berth node` in a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/kube/labels.hpp"
#include "engine/kube/manifest.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "kube/plugin/resource.hpp"

namespace berth::engine {

inline constexpr const char* kKubeletDirectory = "/var/lib/kubelet";

/// The flags of berth-node; empty: its own default.
struct AgentRequest {
  std::string config;  ///< node.toml
  std::string kubelet_dir;
  std::string driver_root;  ///< empty: as for every verb
  std::string state_dir;
  std::string cdi_dir;
  std::string hand_over;
  bool debug = false;
};

/// Executes berth-node in this process; returns only on failure.
/// Errors: not_found (this installation lacks it).
Error become_agent(const Context& context, const AgentRequest& request);

/// The resources in `file`; without it in node.toml of the site's directory; without that the
/// default ones of `inventory`. Errors: not_found (`file`), corrupt.
Result<std::vector<kube::Resource>> resources_of(const Context& context, const std::string& file,
                                                 const gpu::Inventory& inventory);

/// A name under which a GPU is offered.
struct OfferedName {
  std::string resource;
  uint32_t devices = 1;
  std::string trouble;  ///< why no pod gets the GPU under this name; empty: it is healthy
};

/// A GPU, slice or partition.
struct OfferedUnit {
  std::string index;  ///< "0", "0:1"
  std::string id;     ///< of the device, as the kubelet knows it
  std::string model;
  std::vector<OfferedName> names;
  std::vector<std::string> holders;  ///< "pod default/train (berth.dev/gpu)", "container 'web' …"
};

struct NodeStatus {
  /// Whether berth-node serves the names; nothing: this user cannot see the kubelet's directory.
  std::optional<bool> running;
  bool synthetic = false;
  std::vector<OfferedUnit> units;
};

/// What berth-node offers, or would offer, by the inventory and the ledger alone.
/// Errors: those of list_gpus(), list_gpu_holders() and resources_of().
Result<NodeStatus> node_status(const Context& context, const std::string& config,
                               const std::string& kubelet_dir);

/// The same for these GPUs, names and leases. Pure.
std::vector<OfferedUnit> offered_units(const gpu::Inventory& inventory,
                                       const std::vector<kube::Resource>& resources,
                                       const gpu::Holders& holders);

/// The objects of node_manifest(), with the resources of `config` after the general ones.
/// Errors: not_found (`config`), corrupt, usage (names that Kubernetes does not allow, a driver
/// root that is not absolute).
Result<json::Array> make_manifest(const Context& context, ManifestRequest request,
                                  const std::string& config);

/// Writes nfd_feature_file() atomically.  Errors: denied, not_found.
Result<void> write_nfd_file(const NodeLabels& labels, const std::string& path);

}  // namespace berth::engine
