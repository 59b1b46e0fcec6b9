// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/context.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// The image store of this context, with layers as this identity can use them.
Result<image::Store> open_store(const Context& context);

}  // namespace berth::engine
