// SPDX-License-Identifier: Apache-2.0
// The base images of a Containerfile. Pure; the builder itself parses the rest.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bake {

/// An image's name, and its spelling in the file: "debian:12", "debian:$VERSION".
struct BaseImage {
  std::string name, spelled;
  bool operator==(const BaseImage&) const = default;
};

/// The images in FROM, COPY --from and RUN --mount=from, without duplicates, in their order, with
/// build arguments substituted; without stages of the file and "scratch". For FROM only ARGs before
/// the first one count, as in builders.
/// Errors: usage (no FROM; an image name that is empty after substitution; over 1,000 instructions
/// or 1 MiB).
/// Source: docker build reference, "FROM", "ARG", "Environment replacement".
Result<std::vector<BaseImage>> base_images(std::string_view containerfile,
                                           const std::map<std::string, std::string>& args);

/// The file rewritten for builders with a cache that considers the names of build arguments but not
/// their values (buildah with --layers: it took `ENV` and `LABEL` with another value for the same
/// step): adds after each ARG of a stage another one with a name that depends on the value.
/// Errors: as above.
Result<std::string> with_values_in_names(std::string_view containerfile,
                                         const std::map<std::string, std::string>& args);

}  // namespace berth::bake
