// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/facts.hpp"
#include "doctor/finding.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::doctor {

/// The paths to examine; absolute.
struct Inputs {
  std::string root;
  std::string state;
  std::string libexec;
  std::string driver_root = "/";
  std::string config_dir = "/etc/berth";
  std::vector<std::string> cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  std::optional<Error> no_home;     ///< why there is no root
  std::string network;              ///< the default of containers; empty: unknown
  std::optional<Error> no_network;  ///< why they cannot have it
  std::string job;                  ///< "Slurm job 42"
  Scope scope = Scope::everything;
};

/// Examines the machine. Unreadable things are facts, never errors. With Scope::everything an
/// ordinary user's process is in a user namespace of its own afterwards: the last tests make one
/// and mount an overlay in it. Leaves nothing behind.
Facts gather(const Inputs& inputs);

// The parts of gather(), each for one subject.

/// Everything except the tests and what depends on the driver root.
HostFacts gather_host(const Inputs& inputs);

/// Tests making a user namespace and mounting an overlay, and records the results.
void try_out(const Inputs& inputs, HostFacts& host);

GpuFacts gather_gpu(const Inputs& inputs);

/// The driver's device nodes and the files at their paths.
std::vector<NodeFacts> gather_nodes(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

/// The CDI files in `directories`, parsed as by every consumer. Those of a synthetic root are the
/// root's own.
std::vector<CdiFile> gather_cdi_files(const gpu::DriverRoot& root,
                                      const std::vector<std::string>& directories);

/// The keys in the text of NVIDIA's config.toml that differ from the toolkit's defaults:
/// "nvidia-container-cli.no-cgroups = true". Pure. Errors: those of policy::parse_toml(), which
/// name `document`.
Result<std::vector<std::string>> changed_toolkit_keys(std::string_view text,
                                                      std::string_view document);

}  // namespace berth::doctor
