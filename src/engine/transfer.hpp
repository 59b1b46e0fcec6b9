// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "image/transfer_protocol.hpp"

/// Everything that talks to a registry, hashes or inflates: done by the child `berth-transfer`.
namespace berth::engine {

/// Is called for layer and status events while the child works; warnings go to the context's log.
using Progress = std::function<void(const image::TransferEvent&)>;

/// Runs one request; `root`, `ownership` and `overlay_xattr` of the request are filled from the
/// context. Descriptors named by "/dev/fd/0" and "/dev/fd/1" are the caller's stdin and stdout:
/// the child sees them as 3 and 4.
/// Errors: what the child reports, with its kind, hint and context; interrupted (it was killed),
/// not_found (the program is missing), corrupt (it is of another version).
Result<image::TransferResult> transfer(const Context& context, image::TransferRequest request,
                                       const Progress& progress);

}  // namespace berth::engine
