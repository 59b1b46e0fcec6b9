// SPDX-License-Identifier: Apache-2.0
// One fetch for all nodes of a Slurm step: the first node asks the registry for the image; each
// other node asks a node of the step. The step's board, a server in srun (slurm/board.hpp), tells
// each node which one (docs/decisions/0166).
#pragma once

#include <optional>
#include <string>

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/registry_access.hpp"
#include "image/store.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// The part of this node in the fetch of its step. Serves other nodes as long as this object
/// exists.
class JobFetch {
 public:
  /// An object that is alone: asks no node and serves none.
  JobFetch() = default;

  /// Joins the fetch of the image of `request` in the step that the environment names. Returns an
  /// object that is alone if there is no such step or no other node, and, with a warning, if the
  /// step's board cannot be reached. A node that has the image asks no other node, and serves
  /// others in the background.
  static JobFetch begin(const Context& context, const image::Store& store,
                        const RunRequest& request, const image::RegistryAccess& access);

  /// Adds to `access` the nodes to ask before the registry.
  void add_to(image::RegistryAccess& access) const;

  /// Call when the container of this node has ended. Completes running transfers to other nodes if
  /// that takes only seconds; otherwise those nodes ask the next node on their lists.
  void finish();

  struct Part;

 private:
  Result<void> join(const Context& context, const Part& part, const image::JobOrder& order);
  Result<void> give(const Context& context, const image::JobOrder& order);

  sys::Process helper_;  // serves other nodes
  std::optional<image::JobPeers> peers_;
};

/// The body of `berth slurm give`: reads an image::JobOrder from standard input, registers the
/// address of this node at the step's board, and executes berth-hub when a node connects. Until
/// then SIGHUP ends this process.
Result<void> give_to_job(const Context& context);

}  // namespace berth::engine
