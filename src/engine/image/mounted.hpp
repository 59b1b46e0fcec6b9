// SPDX-License-Identifier: Apache-2.0
// Images mounted at a directory of the host, to look into them.
// docs/decisions/0150-layers-change-their-form.md
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/store.hpp"

namespace berth::engine {

struct MountedImage {
  std::string image;      ///< a name or the id; for a file its path
  std::string image_id;   ///< the first 12 digits; empty for a file
  std::string directory;  ///< absolute
};

/// Mounts an image of the store, or a squashfs or SIF file, read-only at `directory`, in the mount
/// namespace of this process. Returns the absolute path of the directory.
/// Errors: not_found (an image, the directory), usage (not a directory), denied (an ordinary user
/// outside of 'berth unshare'), busy (an image is mounted there already), io.
Result<std::string> mount_image(const Context& context, const std::string& image,
                                const std::string& directory);

/// The mounted images that this process sees, in the order of its mount table.  Errors: io.
Result<std::vector<MountedImage>> list_mounted_images();

/// The mounted images that belong to `store`, with their layers.  Errors: io.
Result<std::vector<image::Image>> find_mounted(const image::Store& store);

/// Errors: not_found (no image is mounted there), busy (a process uses it), denied.
Result<void> unmount_image(const std::string& directory);

/// The first directory at which the image with this id ("sha256:…") is mounted for this process;
/// empty: none.
std::string mounted_at(std::string_view image_id);

/// Executes `command`, or the user's shell, in a new mount namespace inside the user namespace of
/// this process; returns only on failure.
Result<void> run_unshared(const Context& context, const std::vector<std::string>& command);

}  // namespace berth::engine
