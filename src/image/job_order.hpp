// SPDX-License-Identifier: Apache-2.0
// What `berth slurm step` tells of the one image that this node passes on to others of its job: to
// berth-hub, or to the `berth slurm give` that starts it when somebody asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/registry_access.hpp"

namespace berth::image {

struct JobOrder {
  std::string root;       ///< of the store: what is on its way lies there, in files without names
  std::string reference;  ///< canonical: nothing but this image is given
  std::string key;        ///< of the TLS with the other nodes: a client that has it may ask
  RegistryAccess access;  ///< where it comes from: the nodes above, then the registry
  uint32_t idle_seconds = 120;  ///< nobody has asked for so long: nobody will
};

/// One JSON object with its newline.
std::string to_json(const JobOrder& order);
/// Errors: corrupt (another form).
Result<JobOrder> parse_job_order(std::string_view text);

}  // namespace berth::image
