// SPDX-License-Identifier: Apache-2.0
// Changes in the root file system of a container that is being made: foreign and hostile. Every
// path is resolved as the container would, from a handle of its root.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

// A volume is not the image's: no link of the image leads into one, and none is written to.

/// The directory of `path` in `root`, made with its parents where it is missing.
struct Place {
  sys::Fd directory;
  std::string name;  ///< the last component
};
Result<Place> open_place(const sys::Fd& root, const std::string& path);

/// As `ln -sf`: a file or link of that name is replaced, one that says the same is left as it is.
/// Errors: exists (a directory has the name), denied (it lies in a volume), io (a read-only file
/// system), …
Result<void> put_link(const sys::Fd& root, const std::string& path, const std::string& target);

/// A new file under the name, whatever had it before. On a read-only file system, and in a
/// volume that has this very path, the file is laid over the old one instead, in this mount
/// namespace. Errors: denied (a link leads into a volume), those of both.
Result<void> put_file(const sys::Fd& root, const std::string& path, std::string_view bytes);

// What is for linkers and for the container's own ldconfig: where the root has no place for it, the
// container is none the worse.

/// A link, where nothing has the name and its directory is there.  Errors: io.
Result<void> put_optional_link(const sys::Fd& root, const std::string& path,
                               const std::string& target);

/// A file, where nothing has the name.  Errors: io.
Result<void> put_optional_file(const sys::Fd& root, const std::string& path,
                               std::string_view bytes);

/// Mounts a read-only file of those bytes over what `path` is.
Result<void> cover_file(const sys::Fd& root, const std::string& path, std::string_view bytes);

/// The bytes of a regular file of at most `max_bytes` that everybody may read; nothing for anything
/// else or where there is nothing: an image may have a fifo there, a device, or a link into a
/// volume.
Result<std::optional<std::string>> find_file(const sys::Fd& root, const std::string& path,
                                             size_t max_bytes);

}  // namespace berth::gpu::cdi
