// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::oci {

/// The number of a capability by its spec name ("CAP_CHOWN" → 0); nothing for other names,
/// including those in lower case or without the prefix. Source: linux/capability.h.
std::optional<unsigned> capability_number(std::string_view name);

/// The spec name of capability `number`; nothing for numbers newer than this table (40).
std::optional<std::string_view> capability_name(unsigned number);

/// All spec names in the order of their numbers.
std::span<const std::string_view> capability_names();

/// The spec name for common spellings ("net_admin", "NET_ADMIN", "CAP_NET_ADMIN").
/// Errors: usage (an unknown name; the hint is the nearest one).
Result<std::string_view> parse_capability(std::string_view text);

/// Docker's fourteen, as spec names, in the order of their numbers.
std::span<const std::string_view> default_capabilities();

/// The bits of `names`, bit n for capability n. Unknown names are appended to `unknown`.
uint64_t capability_bits(const std::vector<std::string>& names, std::vector<std::string>& unknown);

}  // namespace berth::oci
