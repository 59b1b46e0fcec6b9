// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::slurm {

/// What packaging/slurm/image-bundles writes into the one bundle that all paths of images are: the
/// directory that these paths begin with.
inline constexpr std::string_view kImagesAnnotation = "dev.berth.slurm.images";

struct Spelled {
  std::string image;
  std::string program;  ///< as it was typed, "python"; empty where the path does not tell
};

/// The path that cli_filter.lua has made, which slurmstepd gives as the root of a bundle:
/// "IMAGES/a/../dot/../b/../program/../s/../h/../rootfs" is the image "a.b" and the program "sh".
/// Pure. Errors: corrupt (no such path).
Result<Spelled> read_spelled(std::string_view root, std::string_view images);

}  // namespace berth::slurm
