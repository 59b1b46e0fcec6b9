// SPDX-License-Identifier: Apache-2.0
// The node's MPI and fabric in a container (docs/mpi.md, docs/decisions/0165).
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/image_driver.hpp"
#include "engine/gpu/provenance.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The path of the host's MPI libraries in a container.
inline constexpr const char* kMpiDirectory = "/usr/local/berth/mpi";

/// Applies --mpi of `look.request` to `spec`, and adds the reasons to `provenance`: nodes of the
/// fabric, and, if the host's MPI replaces the image's, its libraries and plugins as mounts, and
/// entries for the loader's cache. Does nothing without --mpi.
/// Errors: unsupported (mode host: why the image's cannot be replaced), io.
Result<void> add_mpi(const Context& context, const ImageLook& look, oci::Spec& spec,
                     Provenance& provenance);

}  // namespace berth::engine
