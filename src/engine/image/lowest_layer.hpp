// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Puts the directory `layer` below every other layer of the root of `spec`, so that the image's
/// own files win: it holds places for mounts. Nothing where it is empty or the root is no overlay.
void add_lowest_layer(const std::string& layer, oci::Spec& spec);

}  // namespace berth::engine
