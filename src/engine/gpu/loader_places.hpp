// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/loader.hpp"

namespace berth::engine {

/// Adds a layer below all layers of the image for the container's loader: the mount point of
/// ldconfig's configuration, the file that makes ldconfig read it, and the driver's libraries under
/// their names without a version. The image's own files hide these, and the container's own layer
/// gets none of them. Does nothing for a container without granted libraries. See
/// docs/decisions/0173.  Errors: io (the state directory).
Result<void> add_loader_places(const Context& context, oci::Spec& spec);

/// The entries that the loader of a container of this configuration needs beyond its image's cache.
std::vector<scan::LoaderEntry> loader_entries_of(const oci::Spec& spec);

}  // namespace berth::engine
