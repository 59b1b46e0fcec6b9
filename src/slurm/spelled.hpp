// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::slurm {

/// The annotation that packaging/slurm/image-bundles writes into the common bundle of all image
/// paths. The value is the directory with which these paths begin.
inline constexpr std::string_view kImagesAnnotation = "dev.berth.slurm.images";

struct Spelled {
  std::string image;
  std::string program;  ///< as typed, "python"; empty if the path does not contain it
};

/// Parses the path made by cli_filter.lua, which slurmstepd passes as the root of a bundle:
/// "IMAGES/a/../dot/../b/../program/../s/../h/../rootfs" is the image "a.b" and the program "sh".
/// Pure. Errors: corrupt (not of this form).
Result<Spelled> read_spelled(std::string_view root, std::string_view images);

}  // namespace berth::slurm
