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

/// The texts of /etc/passwd and /etc/group.
struct Accounts {
  std::string passwd;
  std::string group;
};

/// The complete description of a container, before anything of it is on disk. `--dry-run` prints
/// its plan, `explain` its provenance; `run`, `create` and `start` apply it.
struct Decision {
  std::string id;
  std::string hostname;
  std::vector<std::string> command;
  std::vector<std::string> layers;     ///< the image's: absolute directories, highest first
  DriverCopies driver;                 ///< GPU driver files to copy into the container's layer
  oci::Spec spec;                      ///< its config.json
  Provenance provenance;               ///< why it has these GPUs
  gpu::HeldLease lease{};              ///< released with this object unless leave() was called
  std::optional<Accounts> accounts{};  ///< replace the image's
};

}  // namespace berth::engine
