// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Adds, below the image, the files by which programs detect a container: /.dockerenv (docker's)
/// and /run/.containerenv (podman's, which names the engine). Only for an overlay root; diff and
/// commit do not show them.  Errors: io.
Result<void> add_container_marks(const Context& context, oci::Spec& spec);

}  // namespace berth::engine
