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

/// The config that the container was made with.  Errors: not_found, corrupt.
Result<oci::Spec> read_config(const Context& context, const ContainerSummary& container);

/// The files of a container from outside, held open.
class RootView {
 public:
  /// What the container sees: its layers, its volumes, its /etc/hosts. Of a running one what its
  /// first process sees; of another one the same, mounted where nobody but this process and its
  /// children sees it, while nobody can start it. This process is in a mount namespace of its own
  /// afterwards.
  /// Errors: busy (it is being started or removed), not_found (an image's layer), denied, io.
  static Result<RootView> open(const Context& context, const ContainerSummary& container);

  /// The image's layers and the container's own alone, whether it runs or not; read-only.
  static Result<RootView> open_layers(const Context& context, const ContainerSummary& container);

  const sys::Fd& root() const { return root_; }
  /// Whether the container may not write outside of its volumes.
  bool read_only() const { return read_only_; }
  /// Unmounts it, before the container's directory is removed. What is open stays.
  Result<void> unmount() const;

 private:
  std::optional<ContainerDirectory> lock_;
  sys::Fd root_;
  std::string place_;  ///< where it is mounted; empty: nowhere
  bool read_only_ = false;
};

/// The container's own layer, for diff and commit.  Errors: not_found.
Result<sys::Fd> open_upper(const Context& context, const ContainerSummary& container);

/// A root that is a copy, and the layers that it was made of, highest first.
struct RootCopy {
  sys::Fd root;
  std::vector<sys::Fd> layers;
};
/// Nothing for a container whose root is none.  Errors: not_found (a layer), corrupt.
Result<std::optional<RootCopy>> open_copy(const Context& context,
                                          const ContainerSummary& container);

/// The directories below the container's own layer, highest first, absolute.
/// Errors: corrupt (its config).
Result<std::vector<std::string>> lower_layers(const Context& context,
                                              const ContainerSummary& container);

}  // namespace berth::engine
