// SPDX-License-Identifier: Apache-2.0
// Explains the driver: how its files enter the container, and which libcuda is loaded.
#pragma once

#include <optional>

#include "engine/gpu/provenance.hpp"
#include "gpu/grant/grant.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// How NVIDIA's files enter the container ("driver-mode"). Nothing for GPUs of other vendors, which
/// have their libraries in images, and without granted GPUs. Pure.
std::optional<gpu::Reason> driver_mode(const Provenance& provenance);

/// The file that a program in the container loads as libcuda.so.1 ("loads"): its path in the
/// container, how the loader finds it, and its origin; its file on the host as `host_path`. Nothing
/// unless an NVIDIA GPU or a CDI device with a libcuda was granted. Pure.
/// Source: ld.so(8); docs/decisions/0029.
std::optional<gpu::Reason> loaded_libcuda(const Provenance& provenance, const oci::Spec& spec);

}  // namespace berth::engine
