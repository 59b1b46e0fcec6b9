// SPDX-License-Identifier: Apache-2.0
// Images as data: --mount type=image.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/layer_view.hpp"
#include "engine/request.hpp"
#include "engine/transfer.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Pulls those that the store lacks. What an image needs of a machine does not count: it is read.
/// Errors: not_found, and those of pulling.
Result<void> pull_image_mounts(const Context& context, const image::Store& store,
                               const RunRequest& request, const RunCall& call,
                               const Progress& progress);

/// Looks up what the references mean and keeps it in `request`: a container that is started again
/// has what it had. Gives the images.
/// Errors: not_found.
Result<std::vector<image::Image>> fix_image_mounts(const image::Store& store, RunRequest& request);

/// What berth-runtime is told of them.
/// Errors: not_found (an image), usage (its place in `view` is no directory).
Result<std::vector<oci::Mount>> make_image_mounts(const Context& context, const RunRequest& request,
                                                  const LayerView& view);

}  // namespace berth::engine
