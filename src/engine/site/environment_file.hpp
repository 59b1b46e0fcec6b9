// SPDX-License-Identifier: Apache-2.0
// Environment definition files (edf/definition.hpp) as --environment names them.
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

/// What the file `name` and its bases say. With a slash or ".toml" at its end `name` is a path,
/// else NAME.toml is looked for in the directories of EDF_PATH, or in ~/.edf where that is not set.
/// Errors: not_found, usage and corrupt ("…/pytorch.toml:3: …"), and those of opening the files.
Result<edf::Definition> read_environment_file(const Environment& caller, const std::string& name);

/// The image of a definition as the command line names it: "nvcr.io#nvidia/pytorch:24.01" is
/// nvcr.io/nvidia/pytorch:24.01, "./x.sqsh" and "/x.sqsh" stay. Empty where there is none.
/// Errors: usage (no such name).
Result<std::string> image_of(const edf::Definition& definition);

/// Adds to `request` what a definition says, but its variables, and no flag has said. Relative
/// paths are below `working_directory`. What asks for CSCS's own hooks is told to `log`. Errors:
/// usage (no command, a mount, a device), and those of find_image_file(); each behind its place.
Result<void> add_definition(const edf::Definition& definition, const std::string& working_directory,
                            Log& log, RunRequest& request);

/// The variables of a definition as entries of an environment: "NAME=value", or "NAME" where the
/// value is empty, which takes the variable away. References in them mean variables of `image`
/// ("K=V"), or else the caller's.
/// Errors: usage (neither has such a variable), behind its place.
Result<std::vector<std::string>> expand_variables(
    const Environment& caller, const std::vector<std::string>& image,
    const std::map<std::string, edf::Text>& variables);

}  // namespace berth::engine
