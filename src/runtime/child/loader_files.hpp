// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime (make), the container's first process before it enters its root (bind),
// the same with the container's identity, capabilities and limits (fill). Hostile: every name below
// the root, and the bytes of the image's loader files, which fill alone reads.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/child/inside.hpp"

/// The files with which a container's loader finds the driver's libraries. See docs/decisions/0173.
namespace berth::runtime {

/// Makes the files that the plan's steps need, in the state directory open as `entry`.
/// Errors: io.
Result<void> make_loader_files(const plan::Plan& plan, const sys::Fd& entry, Prepared& prepared);

/// Puts the container's cache, with the image's bytes, into its root; where that has no place for
/// it, and where the step says so, mounts a file of the state over the image's. Errors: denied (a
/// link into the kernel's file systems or to another mount where a file would have to be made),
/// exists and usage (no file), io.
Result<void> place_loader_files(Inside& inside, const plan::PlaceLoaderFiles& step);

/// Writes the placed files and closes all handles. The image's cache is used if it is whole and of
/// a sane size, else ignored; likewise a compat package. Errors: io (the limit for file sizes).
Result<void> fill_loader_files(Inside& inside, const plan::FillLoaderFiles& step);

}  // namespace berth::runtime
