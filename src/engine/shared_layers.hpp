// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context.hpp"

namespace berth::engine {

/// Gives the layers of a layout's only image that the store has, packed by somebody else, the names
/// of those blobs: builders pack what they build upon anew, in other bytes of the same contents,
/// and every registry and store would keep both. Errors: corrupt (the layout), io.
Result<void> share_layers(const Context& context, const std::string& layout);

}  // namespace berth::engine
