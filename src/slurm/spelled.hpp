// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::slurm {

/// What packaging/slurm/image-bundles writes into the one bundle that all paths of images are: the
/// directory that these paths begin with.
inline constexpr std::string_view kImagesAnnotation = "dev.berth.slurm.images";

/// The name that cli_filter.lua has made a path of, which slurmstepd gives as the root of a bundle:
/// "IMAGES/a/../dot/../b/../rootfs" is "a.b". Pure.
/// Errors: corrupt (no such path).
Result<std::string> spelled_name(std::string_view root, std::string_view images);

}  // namespace berth::slurm
