// SPDX-License-Identifier: Apache-2.0
// The index of CDI devices: what the files of the CDI directories mean, resolved on this machine.
// `berth cdi refresh` writes it as <state>/cdi/index.json; berth-runtime reads it, so that no
// privileged program has to read YAML, look for hooks or open a library. `berth run --device` makes
// the same in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"
#include "sys/fd.hpp"

namespace berth::gpu::cdi {

inline constexpr uint32_t kIndexFormat = 1;
inline constexpr const char* kIndexName = "cdi/index.json";  ///< below the state directory

/// The directories of CDI files, the later ones first believed (CDI SPEC.md).
std::vector<std::string> default_directories();

/// Something of the host that the index was made from, and what tells it from another version of
/// itself: for a node its number and mode, else device, inode, size and time; empty when absent.
struct Stamp {
  std::string path;
  std::string stamp;
  bool operator==(const Stamp&) const = default;
};

/// A CDI file: what all of its devices need, given once.
struct IndexFile {
  std::string path;
  std::string kind;  ///< "nvidia.com/gpu"
  oci::ContainerEdits edits;
};

struct IndexDevice {
  std::string name;   ///< qualified: "nvidia.com/gpu=0"
  uint32_t file = 0;  ///< of Index::files
  oci::ContainerEdits edits;
};

/// A device that cannot be given, or a file that cannot be read, and why.
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

/// What `path` is now. Errors: io.
Result<Stamp> stamp_of(const std::string& path);

/// Whether everything that the index was made from is as it was. One stat each.
Result<bool> is_current(const Index& index);

/// The edits of the named devices in the order of the request, those of their files before the
/// first device of each; a device that is named twice is given once. Pure.
/// Errors: not_found (with the nearest name; "berth cdi list"), unsupported (a conflict, or a
/// device that cannot be resolved: its fault says why), usage (not a qualified name).
Result<oci::ContainerEdits> edits_of(const Index& index, const std::vector<std::string>& names);

/// The index at `path`; nothing where there is none. Whether it is current is is_current()'s to
/// say. Errors: denied (a file that others than root or the effective user can write), corrupt,
/// unsupported (another format).
Result<std::optional<Index>> read_index(const std::string& path);

/// Compact JSON.
std::string write_index(const Index& index);

}  // namespace berth::gpu::cdi
