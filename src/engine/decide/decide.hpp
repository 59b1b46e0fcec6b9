// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/gpu/gpus.hpp"
#include "engine/gpu/lease.hpp"
#include "engine/gpu/provenance.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The contents of /etc/passwd and /etc/group.
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
  std::optional<Accounts> accounts{};  ///< replace the image's files
};

/// Decides everything about container `id`: user, command, environment, mounts, limits, GPUs. Reads
/// the image's passwd files and the machine; creates only what many containers share.
/// Errors: not_found (user, group, working directory, GPU), usage, unsupported, denied.
Result<Decision> decide(const Context& context, const Resolved& resolved, const std::string& id,
                        Leasing leasing);

/// Creates the lowest layer, which all containers of a store share: empty directories and files
/// where every container has a mount, so that mounting writes nothing into the container's own
/// layer. Returns its absolute path.
Result<std::string> mountpoint_layer(const std::string& root);

}  // namespace berth::engine
