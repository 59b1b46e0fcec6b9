// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "image/registry_access.hpp"

namespace berth::engine {

/// What `berth bake` is asked for.
struct BakeRequest {
  std::string file;                ///< absolute
  std::vector<std::string> cells;  ///< these alone, each published for a merge; empty: all
  bool merge = false;              ///< nothing is built: publishes the index of published cells
  bool publish = true;             ///< else all stays in the store
  bool rebuild = false;            ///< also what has not changed
  bool dry_run = false;            ///< only finds out what would be done
  size_t jobs = 1;                 ///< builds side by side
  /// File of a private key, PEM: index and entries are signed as cosign does.
  std::optional<std::string> sign_key;
  image::RegistryAccess access;
};

}  // namespace berth::engine
