// SPDX-License-Identifier: Apache-2.0
// What a Containerfile is built on. Pure; the builder itself reads the rest.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::bake {

/// An image by its name, and how the file spells it: "debian:12", "debian:$VERSION".
struct BaseImage {
  std::string name, spelled;
  bool operator==(const BaseImage&) const = default;
};

/// The images that FROM, COPY --from and RUN --mount=from name, each once, in their order, with
/// build arguments in place; without stages of the file and "scratch". Of FROM alone ARGs before
/// the first one count, which is what builders do.
/// Errors: usage (no FROM; an image whose name is empty once its arguments are in place; over
/// 1,000 instructions or 1 MiB).
/// Source: docker build reference, "FROM", "ARG", "Environment replacement".
Result<std::vector<BaseImage>> base_images(std::string_view containerfile,
                                           const std::map<std::string, std::string>& args);

/// The same file for a builder whose cache knows the names of build arguments but not their values
/// (buildah with --layers: `ENV` and `LABEL` of another value were taken for the same step): after
/// each ARG of a stage one more, whose name depends on what the first one means.
/// Errors: as above.
Result<std::string> with_values_in_names(std::string_view containerfile,
                                         const std::map<std::string, std::string>& args);

}  // namespace berth::bake
