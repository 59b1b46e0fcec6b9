// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/gpu/gpus.hpp"
#include "engine/gpu/lease.hpp"
#include "engine/gpu/provenance.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The text of /etc/passwd and /etc/group.
struct Accounts {
  std::string passwd;
  std::string group;
};

/// All that a container will be; nothing of it is on disk. `--dry-run` prints the plan of it,
/// `explain` its provenance; `run`, `create` and `start` carry it out.
struct Decision {
  std::string id;
  std::string hostname;
  std::vector<std::string> command;
  std::vector<std::string> layers;     ///< of the image: absolute directories, highest first
  DriverCopies driver;                 ///< files of the GPU driver for its own layer
  oci::Spec spec;                      ///< its config.json
  Provenance provenance;               ///< why it has the GPUs that it has
  gpu::HeldLease lease{};              ///< of its GPUs; goes with this object until leave()
  std::optional<Accounts> accounts{};  ///< its own, in the place of the image's
};

}  // namespace berth::engine
