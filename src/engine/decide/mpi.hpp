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

/// Applies --mpi of `look.request`: adds the device nodes of the fabric to `spec`. If the host's
/// MPI replaces the image's, also adds mounts of the host's MPI libraries and plugins, and entries
/// for the loader's cache. Adds the reasons to `provenance`. Does nothing without --mpi.
/// Errors: unsupported (mode host, but the image's MPI cannot be replaced; the error says why), io.
Result<void> add_mpi(const Context& context, const ImageLook& look, oci::Spec& spec,
                     Provenance& provenance);

}  // namespace berth::engine
