// SPDX-License-Identifier: Apache-2.0
// The node's MPI and fabric in a container (docs/mpi.md, docs/decisions/0165).
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/image_driver.hpp"
#include "engine/gpu/provenance.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Where the host's libraries of MPI lie in a container.
inline constexpr const char* kMpiDirectory = "/usr/local/berth/mpi";

/// Gives `spec` what --mpi of `look.request` asks for, and `provenance` the reasons: nodes of the
/// fabric; and where the host's MPI takes the place of the image's, its libraries and plugins as
/// mounts, and entries of the loader's cache. Nothing without --mpi.
/// Errors: unsupported (mode host: why the image's cannot be replaced), io.
Result<void> add_mpi(const Context& context, const ImageLook& look, oci::Spec& spec,
                     Provenance& provenance);

}  // namespace berth::engine
