// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::transfer {

/// RFC 4648, with padding.
std::string base64_encode(std::string_view bytes);
/// Ignores blanks around the text and accepts missing padding; nothing for other characters or more
/// than 4 MiB.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace berth::transfer
