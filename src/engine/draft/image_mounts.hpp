// SPDX-License-Identifier: Apache-2.0
// Images as data: --mount type=image.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Looks up what the references mean and keeps it in `request`: a container that is started again
/// has what it had. Gives the images.
/// Errors: not_found.
Result<std::vector<image::Image>> fix_image_mounts(const image::Store& store, RunRequest& request);

/// What berth-runtime is told of them.
/// Errors: not_found (an image), usage (its place in `view` is no directory).
Result<std::vector<oci::Mount>> make_image_mounts(const Context& context, const RunRequest& request,
                                                  const LayerView& view);

/// "cannot mount image 'alpine' at '/data'".
std::string cannot_mount(const ImageMount& mount);

}  // namespace berth::engine
