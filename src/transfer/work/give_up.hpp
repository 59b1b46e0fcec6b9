// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/result.hpp"
#include "image/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Ends a failed verb: removes the objects that it published and that no image needs, so that the
/// store is as before. After an interruption these objects stay (docs/decisions/0041). Returns the
/// error; if the disk is full and it has no hint yet, with a hint about space. Call it after the
/// delivery has ended.
Error give_up(image::Store& store, Error error, Events& events);

/// Opens the store of `request` and lets `act` fill it; gives up if that fails. `what`: the context
/// of every error.
template <class Request, class Act>
Result<image::TransferResult> fill_store(const Request& request, const std::string& what,
                                         Events& events, Act act) {
  image::Store store =
      TRY_CTX(image::Store::open(request.root, request.flavor, request.additional_stores), what);
  Result<image::TransferResult> result = act(store);
  if (result.ok()) return result;
  return give_up(store, std::move(result).error().with_context(what), events);
}

}  // namespace berth::transfer
