// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hub/reply.hpp"

namespace berth::hub {

/// The status line and headers of a reply, with the empty line behind them. Leaves out a header
/// with control characters in its value, which only a registry can have caused. `length`: none if
/// the end of the connection marks the end of the body.
/// Source: RFC 9112 sections 4 and 5
std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes);

}  // namespace berth::hub
