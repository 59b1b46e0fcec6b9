// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/grant/grant.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"
#include "policy/rules.hpp"
#include "scan/driver_files.hpp"

/// The facts that Berth records for `berth explain` while it decides about a container.
namespace berth::engine {

/// The kind of the item that describes the container's root.
inline constexpr const char* kRootItem = "rootfs";
/// The kind of an item about a site's rule.
inline constexpr const char* kRuleItem = "rule";

/// The prefix of the kinds of items about MPI.
inline constexpr std::string_view kMpiItems = "mpi";

/// The facts behind a decision. They are turned into text after the command has started, or when a
/// user asks, because that takes longer than granting and placing.
struct Provenance {
  std::optional<gpu::Reason> root = {};     ///< how the root is made; none: kernel overlay
  std::vector<policy::Verdict> rules = {};  ///< of the site
  std::vector<gpu::Verdict> sources;
  gpu::Inventory inventory;  ///< empty if only CDI devices were granted
  gpu::Grant grant;
  std::string mode_from;       ///< what chose the driver mode: "the default", …
  scan::DriverFiles image;     ///< the image's own files; empty if not searched
  oci::ContainerEdits placed;  ///< the nodes, files and variables of `grant` in the container
  std::vector<std::string> cdi_names;
  oci::ContainerEdits cdi;                 ///< edits of `cdi_names`
  std::vector<oci::DeviceNode> by_hand;    ///< GPU nodes requested by path
  std::vector<oci::DeviceNode> kept_back;  ///< GPU nodes withheld from a privileged container
  std::vector<gpu::Reason> mpi;            ///< about --mpi
};

}  // namespace berth::engine
