// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"
#include "engine/state/directory.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The config of the container's last start, or of its creation. Errors: not_found, corrupt.
Result<oci::Spec> read_config(const Context& context, const ContainerSummary& container);

/// An open view of a container's files from outside.
class RootView {
 public:
  /// The files as the container sees them: its layers, its volumes, its /etc/hosts. For a running
  /// container, this is the root of its first process. For a stopped container, mounts the same
  /// files where only this process and its children see them; no process can start the container
  /// meanwhile. Afterwards this process is in its own mount namespace.
  /// Errors: busy (it is being started or removed), not_found (a layer of the image), denied, io.
  static Result<RootView> open(const Context& context, const ContainerSummary& container);

  /// Only the layers of the image and the container's own layer; read-only. The container may be
  /// running or stopped.
  static Result<RootView> open_layers(const Context& context, const ContainerSummary& container);

  const sys::Fd& root() const { return root_; }
  /// Whether the container may write only to its volumes.
  bool read_only() const { return read_only_; }
  /// Unmounts the view before the container's directory is removed. Open files stay usable.
  Result<void> unmount() const;

 private:
  std::optional<ContainerDirectory> lock_;
  sys::Fd root_;
  std::string place_;  ///< the mount point; empty: not mounted
  bool read_only_ = false;
};

/// The container's own layer, for diff and commit.  Errors: not_found.
Result<sys::Fd> open_upper(const Context& context, const ContainerSummary& container);

/// A root that is a copy, and the layers that it was copied from, highest first.
struct RootCopy {
  sys::Fd root;
  std::vector<sys::Fd> layers;
};
/// Nothing if the container's root is not a copy.  Errors: not_found (a layer), corrupt.
Result<std::optional<RootCopy>> open_copy(const Context& context,
                                          const ContainerSummary& container);

/// The layers below the container's own layer, highest first, absolute; without the layers of the
/// GPU driver that were made for this container.
/// Errors: corrupt (its config).
Result<std::vector<std::string>> lower_layers(const Context& context,
                                              const ContainerSummary& container);

}  // namespace berth::engine
