// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hub/config/address.hpp"

namespace berth::hub {

/// The address that `text` is, which is one.
inline Address at(std::string_view text) {
  return *parse_address(text);
}

}  // namespace berth::hub
