// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hub/reply.hpp"

namespace berth::hub {

/// The status line and headers of a reply, with the empty line behind them. A header whose value
/// has control characters, which only a registry can have put there, is left out.
/// `length`: none where the end of the connection ends the body.
/// Source: RFC 9112 sections 4 and 5
std::string head_text(const Reply& reply, std::optional<uint64_t> length, bool closes);

}  // namespace berth::hub
