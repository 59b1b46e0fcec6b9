// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "facts/facts.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// What is found in the files of an image whose layers are all there. What a pull has found in each
/// layer is drawn together; layers that were unpacked by an older Berth are looked through now. The
/// result is kept for the image's id, below the directory for state.
/// Errors: not_found (a layer), io.
Result<facts::ImageFacts> facts_of_image(const Context& context, const image::Image& image);

/// The same for an image of the store by its name.  Errors: also those of Store::get_image().
Result<facts::ImageFacts> facts_of_image_named(const Context& context, std::string_view name);

/// Looks through the tree of a layer.  Errors: io (the tree itself).
Result<facts::LayerFacts> scan_layer(const std::string& directory);

/// The file that is there where the image was found not to run on this machine.
inline constexpr const char* kRefused = ".refused";

/// Where what is known of an image beside the store lies: a name that all its files begin with.
std::string facts_path(const Context& context, const image::Image& image);

/// Removes them, with the image.
void forget_facts(const Context& context, const image::Image& image);

}  // namespace berth::engine
