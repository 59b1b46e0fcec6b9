// SPDX-License-Identifier: Apache-2.0
// Images at a directory of the host, for looking into them.
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
  std::string image;      ///< as it was asked for: a reference or the path of a file
  std::string image_id;   ///< the first 12 digits; of a file empty
  std::string directory;  ///< absolute
};

/// Mounts an image of the store, or a squashfs or SIF file, read-only at `directory`, in the mount
/// namespace of this process. Gives the absolute path of the directory.
/// Errors: not_found (an image, the directory), usage (no directory), denied (an ordinary user
/// outside of 'berth unshare'), busy (an image is mounted there already), io.
Result<std::string> mount_image(const Context& context, const std::string& image,
                                const std::string& directory);

/// Those that this process sees, by the place in its mount table.  Errors: io.
Result<std::vector<MountedImage>> list_mounted_images();

/// Those of `store` among them, with their layers.  Errors: io.
Result<std::vector<image::Image>> find_mounted(const image::Store& store);

/// Errors: not_found (no image is mounted there), busy (somebody works in it), denied.
Result<void> unmount_image(const std::string& directory);

/// The first directory where this process sees the image with this id ("sha256:…"); empty: none.
std::string mounted_at(std::string_view image_id);

/// Becomes `command`, or the user's shell, in a mount namespace of its own inside the user
/// namespace of this process; returns only to say why not.
Result<void> run_unshared(const Context& context, const std::vector<std::string>& command);

}  // namespace berth::engine
