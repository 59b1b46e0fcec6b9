// SPDX-License-Identifier: Apache-2.0
// One fetch for all nodes of a Slurm step: each node asks another one for the image; only the first
// asks the registry (docs/decisions/0166).
#pragma once

#include <optional>
#include <string>

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/registry_access.hpp"
#include "image/store.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// This node's part in its step's fetch: serves other nodes as long as this object exists.
class JobFetch {
 public:
  /// Alone: asks no node and serves none.
  JobFetch() = default;

  /// Joins the step that the environment names with this node, for the image of `request`. Is alone
  /// if there is no such step or no other node, and, with a warning, if the step's board cannot
  /// be reached. A node that has the image asks no other, and serves others in the background.
  static JobFetch begin(const Context& context, const image::Store& store,
                        const RunRequest& request, const image::RegistryAccess& access);

  /// Adds the nodes to ask before the registry.
  void add_to(image::RegistryAccess& access) const;

  /// Call when this node's container has ended: completes running transfers if that takes only
  /// seconds; otherwise those nodes ask the next one.
  void finish();

  struct Part;

 private:
  Result<void> join(const Context& context, const Part& part, const image::JobOrder& order);
  Result<void> give(const Context& context, const image::JobOrder& order);

  sys::Process helper_;  // serves other nodes
  std::optional<image::JobPeers> peers_;
};

/// The body of `berth slurm give`: reads an image::JobOrder from standard input, registers this
/// node's address at the step's board, and becomes berth-hub when a node connects. Until then
/// SIGHUP ends it.
Result<void> give_to_job(const Context& context);

}  // namespace berth::engine
