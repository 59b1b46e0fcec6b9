// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/loader_cache.hpp"

namespace berth::engine {

/// Puts below all layers of the image what the runtime places for the container's loader: the mount
/// point of ldconfig's configuration, the file that makes ldconfig read it, and the driver's
/// libraries under their names without a number. What the image has of these comes first, and
/// nothing of it is in the container's own layer. Does nothing for a container that is
/// given no libraries. See docs/decisions/0173.  Errors: io (the state directory).
Result<void> add_loader_places(const Context& context, oci::Spec& spec);

/// What the loader of a container of this configuration is to find beyond its image's cache.
std::vector<scan::LoaderEntry> loader_entries_of(const oci::Spec& spec);

}  // namespace berth::engine
