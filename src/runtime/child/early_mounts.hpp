// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, before the clone. Capabilities: the caller's, which apply to the host's
// file systems, unlike those in the container's user namespace. Hostile: the root of another
// container. Other sources and maps come from the config. The container's first process attaches
// the mounts that are made here.
#pragma once

#include <optional>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/child/inside.hpp"
#include "sys/fd/fd.hpp"
#include "sys/mount/layer.hpp"
#include "sys/mount/overlay.hpp"

namespace berth::runtime {

/// Whether the caller has to make a mount, because it needs the caller's rights (an id map; a
/// device that the container's rules may forbid to open) or the caller's place in the mount tree (a
/// bind that stays a peer of the host's mount, or a bind of another container's mount:
/// "/proc/PID/root/…").
bool is_early(const plan::MountBind& step);
bool is_early(const plan::MountFilesystem& step);

/// Makes the early mounts of `plan`, detached, in the order of the plan. On a kernel without
/// detached mounts, the handle of a mount that the container's process can make itself is empty.
/// Errors: unsupported (a file system or a kernel without id mapping), denied (no CAP_SYS_ADMIN
/// over the file system), those of the mount itself; each names the mount.
Result<std::vector<sys::Fd>> make_early_mounts(const plan::Plan& plan);

/// Detached views of those sources of `plan` that the container's process would otherwise open
/// itself: in its user namespace it may lack search permission for a directory that the caller may
/// pass.
HeldSources hold_sources(const plan::Plan& plan);

/// The mount of each layer, highest first. Nothing for a directory: the kernel requires directories
/// to be in the mount namespace of the overlay.
using LayerImages = std::vector<std::optional<sys::Fd>>;

/// Mounts those lower layers of the root overlay that are images. This needs the caller's rights,
/// and maybe a loop device that the container's device rules forbid.
/// Errors: those of sys::mount_image().
Result<LayerImages> mount_layer_images(const plan::Plan& plan);
/// The same for each image that is mounted as data, in the order of the plan. Errors: those of
/// sys::mount_image().
Result<std::vector<LayerImages>> mount_data_images(const plan::Plan& plan);

/// The whole root, detached, for a user that cannot mount a kernel overlay, so that fuse-overlayfs
/// serves it. The server runs in the caller's namespaces, where it sees the layers and has the
/// caller's rights over them. `images` are those of mount_layer_images(). Empty if the plan does
/// not ask for fuse-overlayfs.
/// Errors: those of sys::mount_fuse_overlay().
Result<sys::Fd> mount_served_root(const plan::Plan& plan, const LayerImages& images);

/// The layers of `paths` by handle: the mount in `images` if there is one, otherwise the directory.
/// Errors: not_found.
Result<std::vector<sys::Layer>> open_lower(const LayerImages& images,
                                           const std::vector<std::string>& paths);

/// The upper and work directories by handle.  Errors: not_found.
Result<sys::OverlayTop> open_top(const plan::MountOverlayRoot& step);

}  // namespace berth::runtime
