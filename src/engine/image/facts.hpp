// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "facts/facts.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// The findings in the files of an image with all layers present. Combines what a pull has found in
/// each layer; scans layers now that an older Berth unpacked. The result is cached below the state
/// directory by the image's id.
/// Errors: not_found (a layer), io.
Result<facts::ImageFacts> facts_of_image(const Context& context, const image::Image& image);

/// The same for the image `name` of the store.  Errors: also those of Store::get_image().
Result<facts::ImageFacts> facts_of_image_named(const Context& context, std::string_view name);

/// Scans the tree of a layer.  Errors: io (the tree itself).
Result<facts::LayerFacts> scan_layer(const std::string& directory);

/// This file exists if the image was found not to run on this machine.
inline constexpr const char* kRefused = ".refused";

/// The common prefix of the files with an image's facts beside the store.
std::string facts_path(const Context& context, const image::Image& image);

/// Removes those files, when the image is removed.
void forget_facts(const Context& context, const image::Image& image);

}  // namespace berth::engine
