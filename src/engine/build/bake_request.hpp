// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "image/registry_access.hpp"

namespace berth::engine {

/// The options of `berth bake`.
struct BakeRequest {
  std::string file;                ///< absolute
  std::vector<std::string> cells;  ///< to build and publish alone, for a later merge; empty: all
  bool merge = false;              ///< builds nothing; publishes the index of published cells
  bool publish = true;             ///< false: everything stays in the store
  bool rebuild = false;            ///< builds unchanged cells too
  bool dry_run = false;            ///< only reports what would be done
  size_t jobs = 1;                 ///< parallel builds
  /// File of a private key, PEM: signs the index and its entries as cosign does.
  std::optional<std::string> sign_key;
  image::RegistryAccess access;
};

}  // namespace berth::engine
