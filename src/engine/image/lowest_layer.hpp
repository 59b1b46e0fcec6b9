// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Adds the directory `layer`, which holds mount points, below all layers of the root of `spec`, so
/// that the image's own files win. Does nothing if `layer` is empty or the root is not an overlay.
void add_lowest_layer(const std::string& layer, oci::Spec& spec);

}  // namespace berth::engine
