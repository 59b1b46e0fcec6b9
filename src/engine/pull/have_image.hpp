// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "record/record.hpp"

/// The image of a container: found locally, or pulled.
namespace berth::engine {

/// The image of `request` in the store, pulled first if the request or its policy asks for that,
/// and the images that it mounts as data.
/// Errors: not_found, denied (rules of the site), and those of pulling.
Result<image::Image> have_image(const Context& context, const image::Store& store,
                                const RunRequest& request, const RunCall& call,
                                const Progress& progress);

/// The image of an existing container.  Errors: not_found.
Result<image::Image> image_of(const Context& context, const record::Container& record,
                              const RunRequest& request);

}  // namespace berth::engine
