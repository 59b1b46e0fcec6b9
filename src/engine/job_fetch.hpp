// SPDX-License-Identifier: Apache-2.0
// One fetch for all nodes of a Slurm step: each asks another one for the image, and the first asks
// the registry (docs/decisions/0166).
#pragma once

#include <optional>
#include <string>

#include "engine/context.hpp"
#include "engine/request.hpp"
#include "image/registry_access.hpp"
#include "image/store.hpp"
#include "sys/process.hpp"

namespace berth::engine {

/// This node among those of its step, while it lives: what others ask of it is answered until then.
class JobFetch {
 public:
  /// Alone: asks nobody and answers nobody.
  JobFetch() = default;

  /// Takes the place of this node in the step that the environment tells of, for the image of
  /// `request`. Where there is no such step, no other node, or nothing to fetch, it is alone; so it
  /// is, with a warning, where the step's board cannot be reached.
  static JobFetch begin(const Context& context, const image::Store& store,
                        const RunRequest& request, const image::RegistryAccess& access);

  /// Adds the nodes that are asked before the registry.
  void add_to(image::RegistryAccess& access) const;

 private:
  struct Part;
  Result<void> join(const Context& context, const Part& part, image::RegistryAccess access);

  sys::Process front_;
  sys::Fd words_;  // what it says, so that it has somebody to say it to
  std::optional<image::JobPeers> peers_;
};

}  // namespace berth::engine
