// SPDX-License-Identifier: Apache-2.0
// The base images of a Containerfile. Pure; the builder itself parses the rest.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bake {

/// The name of an image, and how the file spells it: "debian:12", "debian:$VERSION".
struct BaseImage {
  std::string name, spelled;
  bool operator==(const BaseImage&) const = default;
};

/// The images named in FROM, COPY --from and RUN --mount=from, in the order of the file, without
/// duplicates, stages of the file and "scratch". Build arguments are substituted. In FROM only the
/// ARGs before the first FROM count, as in builders.
/// Errors: usage (no FROM; an image name that is empty after substitution; over 1,000 instructions
/// or 1 MiB).
/// Source: docker build reference, "FROM", "ARG", "Environment replacement".
Result<std::vector<BaseImage>> base_images(std::string_view containerfile,
                                           const std::map<std::string, std::string>& args);

/// Rewrites the file for a builder that compares only the names of build arguments in its cache,
/// not their values: buildah with --layers took `ENV` and `LABEL` with another value for the same
/// step. Adds after each ARG of a stage a second ARG with a name that depends on the value. Errors:
/// as base_images().
Result<std::string> with_values_in_names(std::string_view containerfile,
                                         const std::map<std::string, std::string>& args);

}  // namespace berth::bake
