// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/result.hpp"
#include "image/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Ends a failed verb: collects objects that it published for no image, so that the store is as
/// before, unless the error is an interruption (docs/decisions/0041). Returns the error, with a
/// hint about space if that was the reason and it has no better hint. Call it after the delivery
/// has ended.
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
