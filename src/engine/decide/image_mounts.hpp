// SPDX-License-Identifier: Apache-2.0
// Image mounts: --mount type=image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The image in the store for each of `mounts`; nothing for a mount of an image file.
/// Errors: not_found.
Result<std::vector<std::optional<image::Image>>> find_images(const image::Store& store,
                                                             const std::vector<ImageMount>& mounts);

/// The image mounts for berth-runtime.
/// Errors: not_found (an image), usage (the destination in `view` is not a directory).
Result<std::vector<oci::Mount>> make_image_mounts(const Context& context, const RunRequest& request,
                                                  const LayerView& view);

}  // namespace berth::engine
