// SPDX-License-Identifier: Apache-2.0
// The resources that the kubelet counts, and the GPUs behind each name. Several names may stand for
// the same GPU. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::kube {

/// A name under which pods ask for GPUs.
struct Resource {
  std::string name;                   ///< "berth.dev/gpu"
  std::optional<gpu::Vendor> vendor;  ///< nothing: GPUs of every vendor
  std::string model;  ///< a pattern for model_label(), with * and ?; empty: every model
  /// Devices that each GPU counts as. More than one: containers share the GPU.
  uint32_t shares = 1;

  bool operator==(const Resource&) const = default;
};

/// The file /etc/berth/node.toml: `[[resource]]` tables with `name`, `vendor`, `model` and
/// `shares`. Errors: corrupt (names the line: no valid TOML, an unknown key, a name that Kubernetes
/// does not allow, two resources of one name).
Result<std::vector<Resource>> parse_resources(std::string_view text, std::string_view document);

/// Without a file: "berth.dev/gpu", "berth.dev/gpu.nvidia", "berth.dev/gpu.nvidia.h100" and, for
/// slices, "berth.dev/gpu.nvidia.mig-1g.10gb".
std::vector<Resource> default_resources(const gpu::Inventory& inventory);

/// A GPU's model as a part of a resource name: "NVIDIA H100 80GB HBM3" is "h100", "Tesla T4" "t4",
/// a MIG slice "mig-1g.10gb". Empty: the model is not known.
std::string model_label(const gpu::Selected& unit);

/// Everything that a container can get: GPUs, and in place of a GPU in MIG mode or in partitions
/// its parts. Points into `inventory`.
std::vector<gpu::Selected> units_of(const gpu::Inventory& inventory);

/// Those of units_of() that `resource` stands for.
std::vector<gpu::Selected> units_of(const Resource& resource, const gpu::Inventory& inventory);

/// The name of one device of a resource: the UUID of the GPU, or its PCI address without "GPU-…";
/// with shares
/// "<that>::<number>".
std::string device_id(const gpu::Selected& unit, const Resource& resource, uint32_t share);

/// The part before "::".
std::string_view unit_of(std::string_view device_id);

/// The socket of a resource's device plugin in the kubelet's directory.
std::string socket_name(std::string_view resource);

/// A name that Kubernetes accepts for a resource: "domain/name".
/// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
bool is_resource_name(std::string_view name);

}  // namespace berth::kube
