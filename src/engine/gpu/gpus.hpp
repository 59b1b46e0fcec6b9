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

/// What the container of `request` is to get of the machine's GPUs and why, before any of them is
/// looked at: flags, the image's variables and labels, the caller's job, and the policy.
/// Errors: those of gpu::choose() and of reading the policy.
Result<gpu::Choice> choose_gpus(const Context& context, const RunRequest& request,
                                const oci::ContainerDefaults& image,
                                const std::vector<std::string>& capabilities);

/// Files of the driver that the container is to have in its own layer.
struct DriverCopies {
  std::vector<gpu::Copy> files;
  std::vector<gpu::GrantedLink> links;
};

/// Gives the nodes that were asked for by their paths, or all with --privileged, but those of GPUs
/// that policy or the caller's job withholds. Before add_gpus().
/// Errors: not_found, usage (no device), denied (one that was named is withheld).
Result<void> add_host_nodes(const Context& context, const RunRequest& request,
                            const gpu::Choice& choice, oci::Spec& spec, Provenance& provenance);

/// Gives what was chosen to `spec`, CDI devices too, and what that was decided by. `copies` is left
/// to be done when the container has a directory; the lease is the container's from then on.
/// Errors: those of lease_gpus(), those of granting and placing (gpu/grant/grant.hpp).
Result<gpu::HeldLease> add_gpus(const Context& context, gpu::Choice choice, const ImageLook& look,
                                Leasing leasing, oci::Spec& spec, DriverCopies& copies,
                                Provenance& provenance);

/// Whether the devices of `spec` will be where they are to be, whatever is mounted there. With
/// --privileged those of a mount at /dev are all there are, as elsewhere.  Errors: denied.
Result<void> check_nodes(const ImageLook& look, const oci::Spec& spec);

}  // namespace berth::engine
