// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Writes the files of an image, all layers as one, to a squashfs that enroot starts: what the
/// image's config says becomes /etc/rc and /etc/environment. The same image gives the same bytes;
/// times of what is made up are SOURCE_DATE_EPOCH, or 0. This process is in a mount namespace of
/// its own afterwards.
/// Errors: not_found (the image, a layer, Debian's tar2sqfs), usage (`output` is no file), io.
Result<void> save_squashfs(const Context& context, const std::string& reference,
                           const std::string& output);

/// The same of the files of a container, with what it has written, but not what is mounted there;
/// an existing file is replaced. The root of one that runs is read as it is meanwhile.
/// Errors: as save_squashfs(); unsupported (its root is a directory of the host).
Result<void> save_container_squashfs(const Context& context, const std::string& reference,
                                     const std::string& output);

}  // namespace berth::engine
