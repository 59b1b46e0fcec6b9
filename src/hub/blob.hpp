// SPDX-License-Identifier: Apache-2.0
// A blob's transfer through the hub, or past it.
#pragma once

#include <string>

#include "base/digest.hpp"
#include "hub/config/config.hpp"
#include "hub/reply.hpp"
#include "hub/sources.hpp"

namespace berth::hub {

struct BlobWish {
  Digest digest;
  bool head = false;
  std::string range;            ///< of plain_range()
  bool client_is_near = false;  ///< on this machine, so that loopback addresses mean the same
};

/// Returns the reply to a HEAD, a redirect or a refusal; streams everything else to `output`.
/// Errors: io (the client or the registry disconnected meanwhile).
Result<Reply> give_blob(Source& source, const BlobWish& wish, Blobs way, Output& output,
                        Note& note);

}  // namespace berth::hub
