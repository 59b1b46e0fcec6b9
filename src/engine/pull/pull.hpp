// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "engine/node/match.hpp"
#include "engine/request/request.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::engine {

/// An image that is wanted of a registry.
struct PullWish {
  /// As flags say it. `node`, `job` and `facts` are filled by this machine and its policy.
  image::PullRequest request;
  GpuWish gpus = {};
  /// The container that is to be started of the image; null: a pull alone.
  const RunRequest* container = nullptr;
};

/// What the store has now.
struct Pulled {
  std::string reference;    ///< canonical
  std::string digest;       ///< of the index, or of the only manifest
  bool downloaded = false;  ///< false: the store had it
};

/// Pulls an image: the site's rules allow its registry, this node chooses the entry of its index,
/// berth-transfer fetches it, and what was found in its files is judged. Remarks are warnings in
/// the context's log; with `strict` each is an error, with `force` nothing is judged.
/// Errors: denied (a rule of the site), unsupported (it does not run here, where a container is to
/// be started or the index says so), those of policy::read_compiled() and of transfer().
Result<Pulled> pull(const Context& context, PullWish wish, const Progress& progress);

}  // namespace berth::engine
