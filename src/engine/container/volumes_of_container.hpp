// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/image_spec.hpp"

/// The volumes of one container, from the request to the mounts.
namespace berth::engine {

/// All volumes of a new container: those of `request`, those of --volumes-from, and those that
/// `image` declares at paths without another mount. Gives anonymous volumes a name.
/// Errors: not_found (a container of --volumes-from), usage (two mounts at one path).
Result<std::vector<Volume>> volumes_of(const Context& context, const oci::ContainerDefaults& image,
                                       const RunRequest& request);

/// Creates the missing volumes of `request`, and fills empty ones from the image: `layers`, highest
/// first. Call once for container `id`, after its config is written.  Errors: those of
/// make_volume() and fill_if_empty().
Result<void> provide_volumes(const Context& context, const RunRequest& request,
                             const std::string& id, const std::vector<std::string>& layers);

}  // namespace berth::engine
