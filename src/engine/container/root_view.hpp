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

/// The config that the container was created with.  Errors: not_found, corrupt.
Result<oci::Spec> read_config(const Context& context, const ContainerSummary& container);

/// An open view of a container's files from outside.
class RootView {
 public:
  /// The container's own view: its layers, its volumes, its /etc/hosts. For a running container,
  /// the root of its first process; for a stopped one the same, mounted where only this process and
  /// its children see it, while no process can start it. Afterwards this process is in its own
  /// mount namespace.
  /// Errors: busy (it is being started or removed), not_found (an image's layer), denied, io.
  static Result<RootView> open(const Context& context, const ContainerSummary& container);

  /// Only the image's layers and the container's own, running or not; read-only.
  static Result<RootView> open_layers(const Context& context, const ContainerSummary& container);

  const sys::Fd& root() const { return root_; }
  /// Whether the container may write only to its volumes.
  bool read_only() const { return read_only_; }
  /// Unmounts it before the container's directory is removed. Open files stay usable.
  Result<void> unmount() const;

 private:
  std::optional<ContainerDirectory> lock_;
  sys::Fd root_;
  std::string place_;  ///< the mount point; empty: not mounted
  bool read_only_ = false;
};

/// The container's own layer, for diff and commit.  Errors: not_found.
Result<sys::Fd> open_upper(const Context& context, const ContainerSummary& container);

/// A copied root, and the layers that it was copied from, highest first.
struct RootCopy {
  sys::Fd root;
  std::vector<sys::Fd> layers;
};
/// Nothing if the container's root is not a copy.  Errors: not_found (a layer), corrupt.
Result<std::optional<RootCopy>> open_copy(const Context& context,
                                          const ContainerSummary& container);

/// The directories below the container's own layer, highest first, absolute.
/// Errors: corrupt (its config).
Result<std::vector<std::string>> lower_layers(const Context& context,
                                              const ContainerSummary& container);

}  // namespace berth::engine
