// SPDX-License-Identifier: Apache-2.0
#include "hub/reload.hpp"

#include "hub/config/config.hpp"
#include "sys/file/file.hpp"

namespace berth::hub {

Result<Renewed> read_again(const Order& running) {
  Renewed renewed{running, {}};
  Config next;
  if (!running.file.empty()) {
    std::string text = TRY(sys::read_file(sys::cwd(), running.file, kMaxConfig));
    next = TRY(read_config(text, running.file));
  }
  TRY(add_flags(next, running.flags));
  if (!next.user_land) next.user_land = running.user_land;
  renewed.fixed = keep_fixed(running.config, next);
  TRY(check(next));  // as it will be served: with the old addresses, too
  renewed.order.config = std::move(next);
  return renewed;
}

}  // namespace berth::hub
