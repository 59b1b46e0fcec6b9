// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::image {

struct LayerFlavor;
struct LayerRecord;

/// A layer of an additional store that this process can use.
struct AdditionalLayer;

/// A store that another user fills and this process only reads, on any file system: the process
/// takes no locks, opens nothing for writing and never waits. The owner of the store may change it
/// at any time.
class AdditionalStore {
 public:
  /// Checks that only root and the caller can have written to the store at the absolute path
  /// `root`. Call it before entering a user namespace: inside, all other users look like root.
  /// Errors: not_found (nothing is there, or not a store), denied, io.
  static Result<void> check_owner(const std::string& root);

  /// Opens the store after check_owner().
  /// Errors: not_found (nothing is there, or not a store), denied (it cannot be read), unsupported
  /// (a store of a later version), io.
  static Result<AdditionalStore> open(const std::string& root);

  const std::string& root() const { return root_; }
  const sys::Fd& dir() const { return dir_; }

  /// Whether the file at `path` can be read.
  bool has_file(const std::string& path) const;

  /// The layer, if a process that unpacks layers as `mine` can use it; nothing if it is missing,
  /// unreadable, or writable by others.
  std::optional<AdditionalLayer> find_layer(const Digest& diff_id, const LayerFlavor& mine) const;

 private:
  AdditionalStore() = default;
  std::string root_;
  sys::Fd dir_;
};

/// Whether a read failed because the owner of the store was changing it, or its server disappeared:
/// worth a retry.
bool has_gone(const Error& error);

}  // namespace berth::image
