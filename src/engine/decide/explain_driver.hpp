// SPDX-License-Identifier: Apache-2.0
// What explain() says of the driver as a whole: how its files come in, and which libcuda counts.
#pragma once

#include <optional>

#include "engine/gpu/provenance.hpp"
#include "gpu/grant/grant.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// How NVIDIA's files come into the container ("driver-mode"); nothing for GPUs of other vendors,
/// whose libraries lie in the images, and where no GPU was granted. Pure.
std::optional<gpu::Reason> driver_mode(const Provenance& provenance);

/// The file that a program of the container gets for libcuda.so.1 ("loads"): its path in the
/// container, how the loader comes to it, and whose it is; what lies on the host as `host_path`.
/// Nothing where neither a GPU of NVIDIA nor a CDI device with a libcuda was given. Pure.
/// Source: ld.so(8); docs/decisions/0029.
std::optional<gpu::Reason> loaded_libcuda(const Provenance& provenance, const oci::Spec& spec);

}  // namespace berth::engine
