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
  std::optional<Error> no_home;     ///< why there is no default place for the store
  std::string network;              ///< the default network of containers; empty: unknown
  std::optional<Error> no_network;  ///< why containers cannot have that network
  std::string job;                  ///< "Slurm job 42"
  Scope scope = Scope::everything;
};

/// Examines the machine. Unreadable things are facts, never errors. With Scope::everything, the
/// process of an ordinary user is in a new user namespace afterwards: the last tests make one and
/// mount an overlay in it. Leaves no files behind.
Facts gather(const Inputs& inputs);

// The parts of gather(), each for one subject.

/// Gathers everything except the tests and the facts that depend on the driver root.
HostFacts gather_host(const Inputs& inputs);

/// Tests whether a user namespace can be made and an overlay mounted, and records the results.
void try_out(const Inputs& inputs, HostFacts& host);

GpuFacts gather_gpu(const Inputs& inputs);

/// The driver's device nodes and the files at their paths.
std::vector<NodeFacts> gather_nodes(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

/// The CDI files in `directories`, parsed as by every engine. With a synthetic root, the
/// directories are looked up in that root.
std::vector<CdiFile> gather_cdi_files(const gpu::DriverRoot& root,
                                      const std::vector<std::string>& directories);

/// The keys in NVIDIA's config.toml with values that differ from the toolkit's defaults:
/// "nvidia-container-cli.no-cgroups = true". Pure. Errors: those of policy::parse_toml(), which
/// name `document`.
Result<std::vector<std::string>> changed_toolkit_keys(std::string_view text,
                                                      std::string_view document);

}  // namespace berth::doctor
