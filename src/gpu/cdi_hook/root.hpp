// SPDX-License-Identifier: Apache-2.0
// Changes in the root file system of a container during creation. That file system is foreign and
// hostile: every path is resolved from a handle of the root, as the container would resolve it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

// A volume is not part of the image: no link of the image is followed into a volume, and no volume
// is written to.

/// The directory of `path` in `root`, made with its parents when missing.
struct Place {
  sys::Fd directory;
  std::string name;  ///< the last component
};
Result<Place> open_place(const sys::Fd& root, const std::string& path);

/// Like `ln -sf`: replaces a file or link of that name, but leaves an equal link alone.
/// Errors: exists (a directory has the name), denied (it is in a volume), io (a read-only file
/// system), …
Result<void> put_link(const sys::Fd& root, const std::string& path, const std::string& target);

/// Makes a new file of that name and replaces any old one. On a read-only file system, or if a
/// volume is mounted at this very path, the new file is mounted over the old one instead, in this
/// mount namespace.
/// Errors: denied (a link leads into a volume), and those of writing and of mounting.
Result<void> put_file(const sys::Fd& root, const std::string& path, std::string_view bytes);

// Files for linkers and for the container's own ldconfig. A container works without them too.

/// Makes a link if the name is free and its directory exists. Errors: io.
Result<void> put_optional_link(const sys::Fd& root, const std::string& path,
                               const std::string& target);

/// Makes a file if the name is free. Errors: io.
Result<void> put_optional_file(const sys::Fd& root, const std::string& path,
                               std::string_view bytes);

/// Mounts a read-only file that contains `bytes` over `path`.
Result<void> cover_file(const sys::Fd& root, const std::string& path, std::string_view bytes);

/// The bytes of a world-readable regular file of at most `max_bytes`; nothing for other files: an
/// image may have a fifo, a device, or a link into a volume at this path.
Result<std::optional<std::string>> find_file(const sys::Fd& root, const std::string& path,
                                             size_t max_bytes);

}  // namespace berth::gpu::cdi
