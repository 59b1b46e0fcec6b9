// SPDX-License-Identifier: Apache-2.0
// The parts of gather(), each for one subject.
#pragma once

#include <string>

#include "doctor/facts.hpp"
#include "doctor/inputs.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::doctor {

/// All but the trials and what depends on the driver root.
HostFacts gather_host(const Inputs& inputs);

/// Makes a user namespace and mounts an overlay, and keeps how that went.
void try_out(const Inputs& inputs, HostFacts& host);

GpuFacts gather_gpu(const Inputs& inputs);

/// Nodes of the driver and what lies at their paths.
std::vector<NodeFacts> gather_nodes(const gpu::DriverRoot& root, const gpu::Inventory& inventory);

/// The CDI files in `directories`, read as every consumer reads them. Those of a synthetic root are
/// the root's own.
std::vector<CdiFile> gather_cdi_files(const gpu::DriverRoot& root,
                                      const std::vector<std::string>& directories);

/// Keys of the text of NVIDIA's config.toml that are not what the toolkit does by itself:
/// "nvidia-container-cli.no-cgroups = true". Pure. Errors: those of policy::parse_toml(), which
/// name `document`.
Result<std::vector<std::string>> changed_toolkit_keys(std::string_view text,
                                                      std::string_view document);

}  // namespace berth::doctor
