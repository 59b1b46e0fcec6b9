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

/// The image store of this context, with layers as this identity can use them, and the additional
/// ones behind it.
Result<image::Store> open_store(const Context& context);
/// The same without additional stores, to count, check or remove.
Result<image::Store> open_own_store(const Context& context);

/// Those additional stores of `paths` that can be used. A warning tells of each of the others: a
/// file server that is away must not keep anybody from what is here.
std::vector<std::string> usable_stores(const Paths& paths, Log& log);

/// The image of the store that a name means, by Store::find_image_named() where that finds one.
Result<std::optional<image::Image>> find_present_image(const image::Store& store,
                                                       const std::string& name);

/// The image that `reference` names.  Errors: not_found ("no such image: X"), corrupt.
Result<image::Image> get_image(const image::Store& store, std::string_view reference);

}  // namespace berth::engine
