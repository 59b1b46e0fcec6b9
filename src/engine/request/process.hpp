// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// K of "K=V" or "K".
std::string_view variable_name(std::string_view entry);

struct EnvironmentInputs {
  const std::vector<std::string>& image;    ///< "K=V" from the image's config
  const std::vector<std::string>& request;  ///< "K=V", or "K" for an inherited value
  const Environment& inherited;             ///< the values for these names
  std::string_view hostname;
  std::string_view home;  ///< of the container's user
  bool terminal = false;
};

/// Docker's order: PATH, HOSTNAME and TERM as defaults, the image's variables over them, the
/// request's over those. A "K" that was not inherited removes the variable. HOME is added last
/// unless it is set.
/// Errors: usage (an entry of the request without a name).
Result<std::vector<std::string>> make_environment(const EnvironmentInputs& inputs);

/// Entrypoint and arguments as one argument list. An entrypoint of the request replaces the image's
/// and drops the image's arguments; arguments of the request replace the image's.
/// Errors: usage (nothing to run).
Result<std::vector<std::string>> make_command(const std::vector<std::string>& image_entrypoint,
                                              const std::vector<std::string>& image_command,
                                              const std::optional<std::string>& entrypoint,
                                              const std::vector<std::string>& command);

}  // namespace berth::engine
