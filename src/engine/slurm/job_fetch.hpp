// SPDX-License-Identifier: Apache-2.0
// One fetch for all nodes of a Slurm step: each asks another one for the image, and the first asks
// the registry (docs/decisions/0166).
#pragma once

#include <optional>
#include <string>

#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/job_order.hpp"
#include "image/registry_access.hpp"
#include "image/store.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// This node among those of its step, while it lives: what others ask of it is answered until then.
class JobFetch {
 public:
  /// Alone: asks nobody and answers nobody.
  JobFetch() = default;

  /// Takes the place of this node in the step that the environment tells of, for the image of
  /// `request`. Where there is no such step or no other node it is alone; so it is, with a warning,
  /// where the step's board cannot be reached. A node that has the image asks nobody, and answers
  /// others without being waited for.
  static JobFetch begin(const Context& context, const image::Store& store,
                        const RunRequest& request, const image::RegistryAccess& access);

  /// Adds the nodes that are asked before the registry.
  void add_to(image::RegistryAccess& access) const;

  /// The container of this node has ended: those that are being given the image get the rest of it,
  /// if that is a matter of seconds. Without it they ask the next one.
  void finish();

  struct Part;

 private:
  Result<void> join(const Context& context, const Part& part, const image::JobOrder& order);
  Result<void> give(const Context& context, const image::JobOrder& order);

  sys::Process helper_;  // who answers
  std::optional<image::JobPeers> peers_;
};

/// What `berth slurm give` is: reads an image::JobOrder on standard input, says to the step's board
/// where this node can be asked, and becomes berth-hub when somebody does. Ends by SIGHUP until
/// then.
Result<void> give_to_job(const Context& context);

}  // namespace berth::engine
