// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"
#include "scan/loader.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// How the container's own layer changes one path of the image.
struct PathChange {
  char kind = 'C';   ///< 'A' added, 'C' changed, 'D' deleted
  std::string path;  ///< absolute
  bool operator==(const PathChange&) const = default;
};

/// In docker's order: by name, a directory before its entries.
/// Errors: not_found, unsupported (its root is a directory of the host), io.
Result<std::vector<PathChange>> container_changes(const Context& context,
                                                  std::string_view reference);

/// The same for an upper directory and the layers below it, highest first. All are untrusted, and
/// `upper` may change meanwhile: links are not followed.
/// `kind`: which extended attributes belong to the overlay. `added`: the entries that Berth added
/// to the loader cache, which do not count as changes.
/// Shape: at most 400 directories deep.
/// Source: kernel overlayfs.rst "whiteouts and opaque directories".
Result<std::vector<PathChange>> layer_changes(const sys::Fd& upper,
                                              const std::vector<sys::Fd>& lower,
                                              image::OverlayXattr kind,
                                              const std::vector<scan::LoaderEntry>& added = {});

/// The differences between a tree and the layers that it was copied from, in the same order.
/// Compares owner, mode, size and time: a change that keeps all four is not detected.
Result<std::vector<PathChange>> copy_changes(const sys::Fd& copy, const std::vector<sys::Fd>& lower,
                                             image::OverlayXattr kind,
                                             const std::vector<scan::LoaderEntry>& added = {});

/// Makes a container's own layer from `changes`, those differences, in the empty directory `upper`,
/// which is on the file system of `copy`: the files of the layer are hard links to those of the
/// copy. No other process may write to `upper`.
/// Errors: usage (deeper than 400 directories), denied, io.
Result<void> make_layer_of_copy(const sys::Fd& copy, const std::vector<PathChange>& changes,
                                const sys::Fd& upper);

}  // namespace berth::engine
