// SPDX-License-Identifier: Apache-2.0
// The order of `berth slurm step` about the one image that this node passes on to others of its
// job: for berth-hub, or for the `berth slurm give` that starts it on the first request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/registry_access.hpp"

namespace berth::image {

struct JobOrder {
  std::string root;             ///< of the store: holds files in transfer, which have no names
  std::string reference;        ///< canonical: only this image is served
  std::string key;              ///< of the TLS with the other nodes: authorises a client
  RegistryAccess access;        ///< the sources: the nodes above, then the registry
  uint32_t idle_seconds = 120;  ///< end after so long without a request
};

/// One JSON object with its newline.
std::string to_json(const JobOrder& order);
/// Errors: corrupt (another form).
Result<JobOrder> parse_job_order(std::string_view text);

}  // namespace berth::image
