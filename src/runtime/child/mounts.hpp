// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, in its mount namespace, before it enters its root.
// Capabilities: all of its user namespace. Hostile: every name and link below the root.
#pragma once

#include "base/result.hpp"
#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// Refuses a target in procfs, sysfs or a cgroup file system: a link in the image may lead there,
/// and the mounted file would replace a file that privileged processes trust. Errors: denied.
Result<void> refuse_kernel_target(const sys::Fd& target, const std::string& path);

// One function per step of plan/plan.hpp. Errors name the target: "cannot mount 'proc' at '/proc'".
Result<void> isolate_mounts();
Result<void> mount_overlay_root(Inside& inside, const plan::MountOverlayRoot& step);
Result<void> mount_layers(Inside& inside, const plan::MountLayers& step);
Result<void> bind_root(Inside& inside, const plan::BindRoot& step);
Result<void> mount_file_system(Inside& inside, const plan::MountFilesystem& step);
Result<void> mount_bind(Inside& inside, const plan::MountBind& step);
Result<void> change_mount(Inside& inside, const plan::ChangeMount& step);
Result<void> mount_cgroups(Inside& inside, const plan::MountCgroups& step);
Result<void> mask_paths(Inside& inside, const plan::MaskPaths& step);
Result<void> make_readonly(Inside& inside, const plan::MakeReadonly& step);
Result<void> enter_root(Inside& inside, const plan::EnterRoot& step);

}  // namespace berth::runtime
