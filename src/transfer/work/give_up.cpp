// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/give_up.hpp"

#include <cerrno>

#include "base/text.hpp"

namespace berth::transfer {

Error give_up(image::Store& store, Error error, Events& events) {
  if (error.sys_errno == ENOSPC || error.sys_errno == EDQUOT) {
    error = std::move(error).with_hint("berth rmi IMAGE, or --root on a larger disk than " +
                                       quote(store.root()));
  }
  // The published layers belong to no image. After a signal they stay, as the user may want to
  // continue.
  if (error.kind == Kind::interrupted) return error;
  auto collected = store.collect();
  if (!collected.ok()) {
    events.warn("cannot clean the store: " + to_line(collected.error()) + ", ignoring");
  }
  return error;
}

}  // namespace berth::transfer
