// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "facts/facts.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// The findings in the files of an image with all layers present. Combines what a pull has found in
/// each layer; layers that an older Berth unpacked are scanned now. The result is cached below the
/// state directory under the id of the image.
/// Errors: not_found (a layer), io.
Result<facts::ImageFacts> facts_of_image(const Context& context, const image::Image& image);

/// The same for the image `name` of the store.  Errors: also those of Store::get_image().
Result<facts::ImageFacts> facts_of_image_named(const Context& context, std::string_view name);

/// Scans the tree of a layer.  Errors: io (the tree itself).
Result<facts::LayerFacts> scan_layer(const std::string& directory);

/// The suffix of a file that exists if Berth found that the image does not run on this machine, or
/// not on its GPUs.
inline constexpr const char* kRefused = ".refused";

/// The common prefix of the paths of the files with the facts of `image`.
std::string facts_path(const Context& context, const image::Image& image);

/// Removes the files with the facts of `image`. Call it when the image is removed.
void forget_facts(const Context& context, const image::Image& image);

}  // namespace berth::engine
