// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/net/socket.hpp"

namespace berth::sys {

/// The same as accept_connection().
inline Result<Fd> accept_unix(const Fd& socket) {
  return accept_connection(socket);
}

}  // namespace berth::sys
