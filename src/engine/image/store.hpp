// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// The image store of this context, with the layers that this identity can mount
/// (image::LayerFlavor), followed by the additional stores.
Result<image::Store> open_store(const Context& context);
/// The same without additional stores, for counting, checking and removing.
Result<image::Store> open_own_store(const Context& context);

/// The usable additional stores of `paths`. Warns about the others: an unreachable file server must
/// not block the use of local images.
std::vector<std::string> usable_stores(const Paths& paths, Log& log);

/// The image with this name in the store; tries Store::find_image_named() first.
Result<std::optional<image::Image>> find_present_image(const image::Store& store,
                                                       const std::string& name);

/// The image that `reference` names.  Errors: not_found ("no such image: X"), corrupt.
Result<image::Image> get_image(const image::Store& store, std::string_view reference);

}  // namespace berth::engine
