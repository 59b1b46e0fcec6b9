// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "image/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// The end of a verb that failed: what it had published for no image is collected, so the store is
/// as it was, unless the error is an interruption (docs/decisions/0041). Returns the error, with a
/// hint about space where that was the reason and nobody had a better one. To be called when the
/// delivery has ended.
Error give_up(image::Store& store, Error error, Events& events);

}  // namespace berth::transfer
