// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

struct CommitOptions {
  std::string reference;             ///< empty: the image has no name
  std::vector<std::string> changes;  ///< "CMD […]", "ENV K=V", … as in a Dockerfile
  std::string author;
  std::string message;
  bool pause = true;  ///< pause the container while it is copied
};

/// Makes an image from a container: the layers of the container's image, the container's own layer,
/// and the container's request as defaults. Returns "sha256:…" of the image.
/// Errors: not_found (the container or its image), usage (a change, a name), io.
Result<std::string> commit_container(const Context& context, std::string_view reference,
                                     const CommitOptions& options);

}  // namespace berth::engine
