// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::engine {

/// Reads a PEM key.  Errors: not_found, denied, corrupt (over 64 KiB).
Result<std::string> read_key_file(const std::string& path);

/// The published facts that the policy trusts.
/// Errors: those of read_compiled(); those of reading the keys, if only signed facts count.
Result<image::FactsTrust> facts_trust(const Context& context);

}  // namespace berth::engine
