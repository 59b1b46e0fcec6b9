// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Writes the files of an image, all layers merged, to a squashfs that enroot can start: the
/// image's config becomes /etc/rc and /etc/environment. The same image gives the same bytes;
/// generated files have the time SOURCE_DATE_EPOCH, or 0. Afterwards this process is in its own
/// mount namespace.
/// Errors: not_found (the image, a layer, Debian's tar2sqfs), usage (`output` is not a file), io.
Result<void> save_squashfs(const Context& context, const std::string& reference,
                           const std::string& output);

/// The same for a container, with its own changes and without its mounts. Replaces an existing
/// file. The root of a running container may change meanwhile.
/// Errors: as save_squashfs(); unsupported (its root is a directory of the host).
Result<void> save_container_squashfs(const Context& context, const std::string& reference,
                                     const std::string& output);

}  // namespace berth::engine
