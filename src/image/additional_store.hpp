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

/// A store that somebody else fills and this process only reads, on whatever file system: no lock,
/// no open for writing, nothing that is waited for. Its owner may change it at any moment.
class AdditionalStore {
 public:
  /// Whether nobody but root and the caller can have written to the store at the absolute path
  /// `root`. To be asked before a user namespace is entered: in one, all others look like root.
  /// Errors: not_found (nothing is there, or no store), denied, io.
  static Result<void> check_owner(const std::string& root);

  /// Opens the store, which has been checked.
  /// Errors: not_found (nothing is there, or no store), denied (it cannot be read), unsupported (a
  /// store of a later version), io.
  static Result<AdditionalStore> open(const std::string& root);

  const std::string& root() const { return root_; }
  const sys::Fd& dir() const { return dir_; }

  /// Whether the file of that path can be read.
  bool has_file(const std::string& path) const;

  /// The layer as a process can use it that unpacks layers as `mine`; nothing where there is none,
  /// or where it cannot be read, or where others can write to it.
  std::optional<AdditionalLayer> find_layer(const Digest& diff_id, const LayerFlavor& mine) const;

 private:
  AdditionalStore() = default;
  std::string root_;
  sys::Fd dir_;
};

/// Whether what was read failed because the owner of the store was changing it, or its server went
/// away: worth another look.
bool has_gone(const Error& error);

}  // namespace berth::image
