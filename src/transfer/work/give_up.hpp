// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "image/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Ends a failed verb: collects objects that it published for no image, so that the store is as
/// before, unless the error is an interruption (docs/decisions/0041). Returns the error, with a
/// hint about space if that was the reason and it has no better hint. Call it after the delivery
/// has ended.
Error give_up(image::Store& store, Error error, Events& events);

}  // namespace berth::transfer
