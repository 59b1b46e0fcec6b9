// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "edf/definition.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/mpi_launch.hpp"
#include "engine/image/transfer.hpp"
#include "engine/network/network.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "record/record.hpp"

namespace berth::engine {

/// A container as flags, an environment file or a Slurm step ask for it: containers, networks,
/// images and variables are still names. resolve() makes a Resolved from it.
struct Asked {
  RunRequest request;
  RunCall call;
  std::optional<NetworkFlags> network;  ///< none: `request` has the network
  std::optional<MpiFlags> mpi;          ///< none: `request` has the MPI options
  /// From an environment file; values may refer to variables of the image.
  std::map<std::string, edf::Text> variables;
  /// "NAME=value", set unless the image or `request` names the variable.
  std::vector<std::string> fallback_environment;
};

/// A container request without unresolved names: its image is in the store, other containers are
/// ids, variables have values, volumes have names, and the site's rules are applied. request.json
/// keeps its request for the next start.
class Resolved {
 public:
  const RunRequest& request() const { return request_; }
  const RunCall& call() const { return call_; }
  const image::Image& image() const { return image_; }
  /// Records in the store that container `id` needs its images.
  /// Errors: not_found (an image has just been removed), io.
  Result<void> mark_used(const std::string& id) const;

 private:
  friend Result<Resolved> resolve(const Context&, Asked, const Progress&);
  friend Result<Resolved> resolve_saved(const Context&, const record::Container&, RunRequest);
  friend Result<Resolved> resolve_again(const Context&, const Resolved&, Asked);
  Resolved() = default;

  RunRequest request_;
  RunCall call_;
  image::Image image_;
  std::optional<image::Store> store_;  ///< set for a new container: the store with its images
  std::vector<image::Image> images_;   ///< in the store: its own image, and the mounted images
};

/// Resolves all names in `asked`, and pulls missing images. Creates nothing of the container. Sets
/// this process's umask to 022 for everything that is created later.
/// Errors: usage, with docker's message where scripts depend on it; not_found (a container, a
/// network, an image); denied (a rule of the site), unsupported, and those of pull().
Result<Resolved> resolve(const Context& context, Asked asked, const Progress& progress);

/// The same for an existing container: `saved` is its request.json. Its image must be in the store.
/// Errors: not_found.
Result<Resolved> resolve_saved(const Context& context, const record::Container& record,
                               RunRequest saved);

/// Applies `asked` to the files of an existing container: root, name and anonymous volumes come
/// from `was`, everything else from `asked`.  Errors: those of resolve() except those about images.
Result<Resolved> resolve_again(const Context& context, const Resolved& was, Asked asked);

}  // namespace berth::engine
