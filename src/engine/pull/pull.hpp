// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/transfer.hpp"
#include "engine/node/match.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "image/transfer_protocol.hpp"
#include "record/record.hpp"

namespace berth::engine {

/// A request for an image of a registry.
struct PullWish {
  /// From the flags. pull() sets `node`, `job` and `facts` from this machine and its policy.
  image::PullRequest request;
  GpuWish gpus = {};
  /// The container that will start from the image; null: only a pull.
  const RunRequest* container = nullptr;
};

/// The result in the store.
struct Pulled {
  std::string reference;    ///< canonical
  std::string digest;       ///< of the index, or of the only manifest
  bool downloaded = false;  ///< false: the store had it
};

/// Pulls an image: checks the site's rules for its registry, chooses the entry of its index for
/// this node, lets berth-transfer fetch it, and judges its files. Remarks are warnings in the
/// context's log; with `strict` each is an error, with `force` nothing is judged.
/// Errors: denied (a rule of the site), unsupported (the image does not run here; only if a
/// container will start, or if the index already shows it), those of policy::read_compiled() and of
/// transfer().
Result<Pulled> pull(const Context& context, PullWish wish, const Progress& progress);

/// The image of `request` in the store. Pulls it first if it is missing or `call` asks for that.
/// Also pulls missing images that the container mounts as data.
/// Errors: not_found, denied (rules of the site), and those of pulling.
Result<image::Image> have_image(const Context& context, const image::Store& store,
                                const RunRequest& request, const RunCall& call,
                                const Progress& progress);

/// The image of an existing container.  Errors: not_found.
Result<image::Image> image_of(const Context& context, const record::Container& record,
                              const RunRequest& request);

}  // namespace berth::engine
