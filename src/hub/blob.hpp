// SPDX-License-Identifier: Apache-2.0
// A blob on its way through the hub, or round it.
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
  bool client_is_near = false;  ///< on this machine, so its loopback is ours
};

/// Gives the reply of a HEAD, a redirect or a refusal; streams all else to `output`.
/// Errors: io (the client or the registry has gone while it came).
Result<Reply> give_blob(Source& source, const BlobWish& wish, Blobs way, Output& output,
                        Note& note);

}  // namespace berth::hub
