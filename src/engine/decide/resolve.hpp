// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/asked.hpp"
#include "engine/image/transfer.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "record/record.hpp"

namespace berth::engine {

/// A container that is asked for, with nothing left to look up by name: its image is in the store,
/// other containers are ids, variables have values, volumes have names, and the site's rules are
/// in it. Its request is what request.json keeps for the next start.
class Resolved {
 public:
  const RunRequest& request() const { return request_; }
  const RunCall& call() const { return call_; }
  const image::Image& image() const { return image_; }
  /// Says in the store that container `id` needs its images.
  /// Errors: not_found (one was removed in this moment), io.
  Result<void> mark_used(const std::string& id) const;

 private:
  friend Result<Resolved> resolve(const Context&, Asked, const Progress&);
  friend Result<Resolved> resolve_saved(const Context&, const record::Container&, RunRequest);
  friend Result<Resolved> resolve_again(const Context&, const Resolved&, Asked);
  Resolved() = default;

  RunRequest request_;
  RunCall call_;
  image::Image image_;
  std::optional<image::Store> store_;  ///< of a new container: its images are there
  std::vector<image::Image> images_;   ///< of the store: its own, and those that it mounts
};

/// Looks up all that `asked` names, and pulls images that are missing. Nothing of the container is
/// made yet. Sets this process's umask to 022, for all that is made later.
/// Errors: usage, in docker's words where scripts know them; not_found (a container, a network, an
/// image); denied (a rule of the site), unsupported, and those of pull().
Result<Resolved> resolve(const Context& context, Asked asked, const Progress& progress);

/// The same for a container that exists: `saved` is its request.json. Its image has to be here.
/// Errors: not_found.
Result<Resolved> resolve_saved(const Context& context, const record::Container& record,
                               RunRequest saved);

/// `asked` over the files of a container that exists: root, name and volumes without a name are
/// those of `was`, all else is of `asked`.  Errors: those of resolve() but for its images.
Result<Resolved> resolve_again(const Context& context, const Resolved& was, Asked asked);

}  // namespace berth::engine
