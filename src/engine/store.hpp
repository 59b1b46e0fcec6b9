// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "engine/context.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// The image store of this context, with layers as this identity can use them, and the additional
/// ones behind it.
Result<image::Store> open_store(const Context& context);
/// The same for who counts, checks or removes: without additional stores.
Result<image::Store> open_own_store(const Context& context);

/// Those additional stores of `paths` that can be used. A warning tells of each of the others: a
/// file server that is away must not keep anybody from what is here.
std::vector<std::string> usable_stores(const Paths& paths, Log& log);

}  // namespace berth::engine
