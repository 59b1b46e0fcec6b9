// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: config.json, which the json reader
// bounds.
#pragma once

#include <string>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::runtime {

/// A directory with a config.json.
struct Bundle {
  std::string path;  ///< absolute
  oci::Spec spec;
};

inline constexpr const char* kConfigFile = "config.json";

/// `config` is the path of the configuration file, relative to the bundle unless absolute. Errors:
/// not_found, corrupt, unsupported (those of oci::parse_spec; a file over 16 MiB).
Result<Bundle> read_bundle(const std::string& path, const std::string& config);

enum class SpecKind { root, rootless };
/// Writes a template of a config.json. Errors: exists (an existing file is not replaced),
/// not_found.
Result<void> write_default_spec(const std::string& directory, SpecKind kind);

}  // namespace berth::runtime
