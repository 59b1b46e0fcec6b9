// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::engine {

/// A key in PEM.  Errors: not_found, denied, corrupt (over 64 KiB).
Result<std::string> read_key_file(const std::string& path);

/// What the policy lets count of what is published.
/// Errors: those of read_compiled(); of reading the keys, where nothing else counts.
Result<image::FactsTrust> facts_trust(const Context& context);

}  // namespace berth::engine
