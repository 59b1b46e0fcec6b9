// SPDX-License-Identifier: Apache-2.0
// Environment definition files (edf/definition.hpp) for --environment.
// docs/environment-files.md
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "edf/definition.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// The definition in the file `name`, merged with its base definitions. A `name` with a slash or
/// with the suffix ".toml" is a path. Otherwise NAME.toml is searched in the directories of
/// EDF_PATH, or in ~/.edf if EDF_PATH is not set.
/// Errors: not_found, usage and corrupt ("…/pytorch.toml:3: …"), and those of opening the files.
Result<edf::Definition> read_environment_file(const Environment& caller, const std::string& name);

/// The image of a definition in the form of the command line: "nvcr.io#nvidia/pytorch:24.01"
/// becomes "nvcr.io/nvidia/pytorch:24.01"; "./x.sqsh" and "/x.sqsh" stay as they are. Empty if the
/// definition has no image.
/// Errors: usage (an invalid name).
Result<std::string> image_of(const edf::Definition& definition);

/// Adds a definition, except its variables, to `request`; flags override the definition. Relative
/// paths are below `working_directory`. Logs requests for CSCS's own hooks to `log`. Errors: usage
/// (no command, a mount, a device), and those of find_image_file(). Each error begins with the file
/// and the line.
Result<void> add_definition(const edf::Definition& definition, const std::string& working_directory,
                            Log& log, RunRequest& request);

/// The variables of a definition as environment entries: "NAME=value", or "NAME" for an empty
/// value, which removes the variable. A reference to a variable uses the value from `image`
/// ("K=V"), else that of the caller.
/// Errors: usage (neither has such a variable); begins with the file and the line.
Result<std::vector<std::string>> expand_variables(
    const Environment& caller, const std::vector<std::string>& image,
    const std::map<std::string, edf::Text>& variables);

}  // namespace berth::engine
