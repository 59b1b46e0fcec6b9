// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/image_spec.hpp"

/// The volumes of one container, from what was asked for to what is mounted.
namespace berth::engine {

/// All volumes of a new container: those of `request`, those of --volumes-from, those that `image`
/// declares and that nothing else is mounted at; each without a name gets one.
/// Errors: not_found (a container of --volumes-from), usage (a place twice).
Result<std::vector<Volume>> volumes_of(const Context& context, const oci::ContainerDefaults& image,
                                       const RunRequest& request);

/// Makes the volumes of `request` that are missing, and fills those that are empty with what the
/// image has in their place: `layers`, highest first. Once for container `id`, whose config is
/// written.  Errors: those of make_volume() and fill_volume().
Result<void> provide_volumes(const Context& context, const RunRequest& request,
                             const std::string& id, const std::vector<std::string>& layers);

}  // namespace berth::engine
