// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/evidence.hpp"
#include "engine/gpu/gpus.hpp"
#include "engine/gpu/lease.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// The text of /etc/passwd and /etc/group.
struct Accounts {
  std::string passwd;
  std::string group;
};

/// A container that is decided but of which nothing is on disk yet.
struct Draft {
  std::string id;
  std::string hostname;
  std::vector<std::string> command;
  std::vector<std::string> layers;  ///< of the image: absolute directories, highest first
  DriverCopies driver;              ///< to be put into its own layer
  oci::Spec spec;
  Evidence evidence;                   ///< why it has the GPUs that it has
  gpu::HeldLease lease{};              ///< of its GPUs, for as long as nobody else keeps it
  std::optional<Accounts> accounts{};  ///< files of its own in the place of the image's
};

/// Decides everything about a container of `image`: user, command, environment, mounts, limits,
/// GPUs. Reads the image's passwd files and the machine; creates only what many containers share.
/// Errors: not_found (user, group, working directory, GPU), usage, unsupported, denied.
Result<Draft> draft_container(const Context& context, const RunRequest& request,
                              const image::Image& image, const std::string& id, Leasing leasing);

/// Beside config.json: what `berth update` is making of it, or was when it was killed.
/// Berth-runtime knows it by this name.
inline constexpr std::string_view kNextConfig = "config.next.json";

/// Writes the config of `draft` into the bundle in `directory`: all that berth-runtime decides by.
Result<void> write_config(const Draft& draft, const ContainerDirectory& directory);

/// Makes the sources of volumes that are missing, and writes the files of `draft`
/// into `directory`.
Result<void> write_files(const RunRequest& request, const Draft& draft,
                         const ContainerDirectory& directory);

/// Makes the lowest layer that all containers of a store share: empty directories and files where
/// every container has a mount, so that mounting writes nothing into the container's own layer.
/// Gives its absolute path.
Result<std::string> placeholder_layer(const std::string& root);

}  // namespace berth::engine
