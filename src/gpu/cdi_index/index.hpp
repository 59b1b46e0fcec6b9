// SPDX-License-Identifier: Apache-2.0
// The index of CDI devices: the content of the CDI directories, resolved on this machine. `berth
// cdi refresh` writes it as <state>/cdi/index.json; berth-runtime reads it, so that no privileged
// program has to read YAML, look for hooks or open a library. `berth run --device` makes the same
// index in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

inline constexpr uint32_t kIndexFormat = 1;
inline constexpr const char* kIndexName = "cdi/index.json";  ///< below the state directory

/// The directories of CDI files; later ones take precedence (CDI SPEC.md).
std::vector<std::string> default_directories();

/// A host file that the index was made from, and the identity of its version: for a device node its
/// number and mode, for other files device, inode, size and time. Empty when the file is absent.
struct Stamp {
  std::string path;
  std::string stamp;
  bool operator==(const Stamp&) const = default;
};

/// A CDI file. Its edits are those that all of its devices need; they are applied once.
struct IndexFile {
  std::string path;
  std::string kind;  ///< "nvidia.com/gpu"
  oci::ContainerEdits edits;
};

struct IndexDevice {
  std::string name;   ///< qualified: "nvidia.com/gpu=0"
  uint32_t file = 0;  ///< index into Index::files
  oci::ContainerEdits edits;
};

/// An unavailable device or an unreadable file, and why.
struct Fault {
  std::string object;  ///< the qualified name, or the path of the file
  std::string text;
};

struct Index {
  uint32_t format = kIndexFormat;
  std::vector<std::string> directories;
  std::vector<Stamp> stamps;
  std::vector<IndexFile> files;
  std::vector<IndexDevice> devices;  ///< by name
  std::vector<Fault> unavailable;    ///< devices
  std::vector<Fault> bad_files;
};

/// The present stamp of `path`. Errors: io.
Result<Stamp> stamp_of(const std::string& path);

/// Whether all files that the index was made from are unchanged. One stat each.
Result<bool> is_current(const Index& index);

/// The edits of the named devices in the order of the request. The edits of a CDI file come before
/// those of its first device. A device that is named twice is granted once. Pure.
/// Errors: not_found (suggests the nearest name, or "berth cdi list"), unsupported (a conflict, or
/// a device that cannot be resolved; gives the reason from its Fault), usage (not a qualified
/// name).
Result<oci::ContainerEdits> edits_of(const Index& index, const std::vector<std::string>& names);

/// The index at `path`; nothing if it does not exist. It may be stale: see is_current(). Errors:
/// denied (a file that users other than root and the effective user can write), corrupt,
/// unsupported (another format).
Result<std::optional<Index>> read_index(const std::string& path);

/// Compact JSON.
std::string write_index(const Index& index);

}  // namespace berth::gpu::cdi
