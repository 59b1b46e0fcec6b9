// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, before the clone. Capabilities: the caller's, which the container's own
// user namespace lacks over the host's file systems. Hostile: the
// root of another container; other sources and maps come from
// the config, and what is made here is attached by the container's first process.
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

/// Whether a mount takes the caller's rights (an id map; a device, which the rules of the container
/// may not let it open) or his place in the tree of mounts (a bind that stays a peer of the
/// host's, or one of what another container has mounted: "/proc/PID/root/…").
bool is_early(const plan::MountBind& step);
bool is_early(const plan::MountFilesystem& step);

/// Makes the early mounts of `plan`, detached, in the order of the plan. The handle of one that the
/// container's process can make as well on a kernel without detached mounts is empty there.
/// Errors: unsupported (a file system or a kernel without id mapping), denied (no CAP_SYS_ADMIN
/// over the file system), those of the mount itself; each names the mount.
Result<std::vector<sys::Fd>> make_early_mounts(const plan::Plan& plan);

/// Views of the sources of `plan` that the container's process opens by itself, for where its user
/// namespace keeps it from passing a directory that its caller may pass.
HeldSources hold_sources(const plan::Plan& plan);

/// Of each layer, highest first: its mount. Nothing for a directory, which the kernel wants from
/// the mount namespace of the overlay.
using LayerImages = std::vector<std::optional<sys::Fd>>;

/// Mounts the lower layers of the root that are images, where that is an overlay: it takes the
/// caller's rights, and maybe a loop device that the rules of the container do not let it open.
/// Errors: those of sys::mount_image().
Result<LayerImages> mount_layer_images(const plan::Plan& plan);
/// The same for each image that is data, in the order of the plan.  Errors: the same.
Result<std::vector<LayerImages>> mount_data_images(const plan::Plan& plan);

/// The whole root, detached, where the kernel has no overlay for this user and fuse-overlayfs
/// serves it: the server is started where it finds the layers, with the caller's rights over them.
/// `images`: of mount_layer_images(). Empty where the plan says nothing of that.
/// Errors: those of sys::mount_fuse_overlay().
Result<sys::Fd> mount_served_root(const plan::Plan& plan, const LayerImages& images);

/// The layers of `paths` by handle: those of `images` that are there, else the directories.
/// Errors: not_found.
Result<std::vector<sys::Layer>> open_lower(const LayerImages& images,
                                           const std::vector<std::string>& paths);

/// What lies above them, by handle.  Errors: not_found.
Result<sys::OverlayTop> open_top(const plan::MountOverlayRoot& step);

}  // namespace berth::runtime
