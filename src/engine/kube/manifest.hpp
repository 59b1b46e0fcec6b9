// SPDX-License-Identifier: Apache-2.0
// The objects that install berth-node in a cluster. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/value.hpp"
#include "kube/plugin/resource.hpp"

namespace berth::engine {

/// The driver of resource.k8s.io, and the domain of its devices' attributes.
inline constexpr std::string_view kDraDriver = "gpu.berth.dev";

struct ManifestRequest {
  std::string image;
  std::string name_space;
  std::string driver_root = "/";  ///< on the nodes
  /// Without the objects of Kubernetes 1.34 and later: claims and device classes.
  bool plugin_only = false;
  std::vector<kube::Resource> resources;  ///< names that get a DeviceClass
};

/// Namespace, ServiceAccount, ClusterRole and binding, DaemonSet, RuntimeClass; with claims also
/// DeviceClasses and the policy that keeps a node's account to its own ResourceSlices. In the order
/// in which they can be created.
json::Array node_manifest(const ManifestRequest& request);

/// The names without a file that say nothing of a model: "berth.dev/gpu", "berth.dev/gpu.nvidia".
std::vector<kube::Resource> general_resources();

/// "berth.dev/gpu.nvidia" → "gpu.nvidia.berth.dev", a name that a DeviceClass can have.
std::string device_class_name(std::string_view resource);

/// A stream of YAML documents for `kubectl apply -f -`.
std::string manifest_yaml(const json::Array& objects);

}  // namespace berth::engine
