// SPDX-License-Identifier: Apache-2.0
// The parts of gather(), each for one subject.
#pragma once

#include <string>

#include "doctor/facts.hpp"
#include "doctor/inputs.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::doctor {

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
