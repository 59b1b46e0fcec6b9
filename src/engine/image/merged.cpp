// SPDX-License-Identifier: Apache-2.0
#include "engine/image/merged.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/file/tree.hpp"

namespace berth::engine {

OverlayAttributes::OverlayAttributes(image::OverlayXattr kind)
    : space_(enum_text(kind) + ".overlay.") {}

Result<bool> OverlayAttributes::opaque(const sys::Fd& directory) const {
  auto found = TRY(sys::read_attribute(directory, space_ + "opaque"));
  if (found && *found == "y") return true;
  // The attribute that fuse-overlayfs sets for an ordinary user.
  found = TRY(sys::read_attribute(directory, "user.fuseoverlayfs.opaque"));
  return found && *found == "y";
}

Result<bool> OverlayAttributes::whiteout(const sys::Fd& file) const {
  auto found = TRY(sys::read_attribute(file, space_ + "whiteout"));
  return found.has_value();
}

Result<bool> is_whiteout(const OverlayAttributes& attributes, const sys::Fd& layer,
                         const std::string& name, const struct stat& status) {
  if (S_ISCHR(status.st_mode)) return status.st_rdev == makedev(0, 0);
  if (!S_ISREG(status.st_mode) || status.st_size != 0) return false;
  // A running container may replace the file in its upper layer by a link or a device.
  auto file = sys::find_regular(layer, name);
  if (!file.ok() || !*file) return false;
  return attributes.whiteout(**file);
}

Result<Below> look_below(const OverlayAttributes& attributes, const Merged& layers,
                         const std::string& name) {
  Below below;
  for (const sys::Fd& layer : layers) {
    auto status = TRY(sys::stat_entry(layer, name));
    if (!status) continue;
    if (TRY(is_whiteout(attributes, layer, name, *status))) break;
    if (!S_ISDIR(status->st_mode)) {
      if (!below.status) below.status = status;
      break;
    }
    if (!below.status) below.status = status;
    below.directory.push_back(TRY(sys::open_at(layer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
    if (TRY(attributes.opaque(below.directory.back()))) break;
  }
  return below;
}

}  // namespace berth::engine
