// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/image_driver.hpp"
#include "engine/gpu/lease.hpp"
#include "engine/gpu/provenance.hpp"
#include "engine/request/request.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/probe/probe.hpp"
#include "oci/image_spec.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Decides which GPUs of the machine the container of `request` gets, and why. Decides from flags,
/// the image's variables and labels, the caller's job, and the policy, before any GPU is probed.
/// Errors: those of gpu::choose() and of reading the policy.
Result<gpu::Choice> choose_gpus(const Context& context, const RunRequest& request,
                                const oci::ContainerDefaults& image,
                                const std::vector<std::string>& capabilities);

/// Files of the driver to copy into the container's own layer.
struct DriverCopies {
  std::vector<gpu::Copy> files;
  std::vector<gpu::GrantedLink> links;
};

/// Adds the nodes that flags name by path, or all nodes with --privileged. Leaves out nodes of GPUs
/// that the policy or the caller's job withholds. Call before add_gpus().
/// Errors: not_found, usage (not a device), denied (a named node is withheld).
Result<void> add_host_nodes(const Context& context, const RunRequest& request,
                            const gpu::Choice& choice, oci::Spec& spec, Provenance& provenance);

/// Adds the chosen GPUs and CDI devices to `spec`, and the reasons to `provenance`. The caller
/// copies `copies` once the container has a directory, and owns the lease.
/// Errors: those of lease_gpus(), and those of granting and placing (gpu/grant/grant.hpp).
Result<gpu::HeldLease> add_gpus(const Context& context, gpu::Choice choice, const ImageLook& look,
                                Leasing leasing, oci::Spec& spec, DriverCopies& copies,
                                Provenance& provenance);

/// Checks that no mount hides the devices of `spec`. With --privileged a mount at /dev replaces all
/// devices, as in other engines.  Errors: denied.
Result<void> check_nodes(const ImageLook& look, const oci::Spec& spec);

}  // namespace berth::engine
