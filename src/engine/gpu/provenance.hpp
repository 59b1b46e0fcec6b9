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

/// What is noted while a container is decided on, for `berth explain` to tell.
namespace berth::engine {

/// What kind of item tells how the root of a container is made.
inline constexpr const char* kRootItem = "rootfs";
/// What kind tells of a rule of the site.
inline constexpr const char* kRuleItem = "rule";

/// Kinds of items about MPI begin so.
inline constexpr std::string_view kMpiItems = "mpi";

/// What a start decided by. Words are made of it after the command runs, or when somebody asks:
/// they take longer than all of granting and placing.
struct Provenance {
  std::optional<gpu::Reason> root = {};     ///< of how the root is made, where it is not as usual
  std::vector<policy::Verdict> rules = {};  ///< of the site
  std::vector<gpu::Verdict> sources;
  gpu::Inventory inventory;  ///< empty where only CDI devices were given
  gpu::Grant grant;
  std::string mode_from;       ///< what chose the grant's driver mode: "the default", …
  scan::DriverFiles image;     ///< what the image brings; empty where nobody looked
  oci::ContainerEdits placed;  ///< what became of `grant`
  std::vector<std::string> cdi_names;
  oci::ContainerEdits cdi;                 ///< of these
  std::vector<oci::DeviceNode> by_hand;    ///< of GPUs, asked for by their paths
  std::vector<oci::DeviceNode> kept_back;  ///< of GPUs, from a container that was to have all
  std::vector<gpu::Reason> mpi;            ///< of --mpi
};

}  // namespace berth::engine
