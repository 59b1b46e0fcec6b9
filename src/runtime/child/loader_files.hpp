// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime (make), the container's first process before it enters its root (bind),
// the same process with the container's identity, capabilities and limits (fill). Hostile: every
// name below the root, and the bytes of the image's loader files, which only fill reads.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/child/inside.hpp"

/// The files with which a container's loader finds the driver's libraries. See docs/decisions/0173.
namespace berth::runtime {

/// Makes the files that the plan's steps need, in the state directory open as `entry`.
/// Errors: io.
Result<void> make_loader_files(const plan::Plan& plan, const sys::Fd& entry, Prepared& prepared);

/// Puts the container's cache, a copy of the image's cache, into its root. If the root has no place
/// for it, or if the step says so, mounts a file of the state directory over the image's cache.
/// Errors: denied (a link into the kernel's file systems or to another mount where a file would
/// have to be made), exists and usage (something else than a file), io.
Result<void> place_loader_files(Inside& inside, const plan::PlaceLoaderFiles& step);

/// Writes the placed files and closes all handles. The image's cache, and its compat package (newer
/// driver libraries), are used if they are whole and of a sane size, else ignored. Errors: io
/// (RLIMIT_FSIZE).
Result<void> fill_loader_files(Inside& inside, const plan::FillLoaderFiles& step);

}  // namespace berth::runtime
