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

/// The definition in the file `name` and its bases. If `name` has a slash or ends in ".toml" it is
/// a path; else NAME.toml is searched in the directories of EDF_PATH, or in ~/.edf if that is not
/// set.
/// Errors: not_found, usage and corrupt ("…/pytorch.toml:3: …"), and those of opening the files.
Result<edf::Definition> read_environment_file(const Environment& caller, const std::string& name);

/// The image of a definition as on the command line: "nvcr.io#nvidia/pytorch:24.01" becomes
/// nvcr.io/nvidia/pytorch:24.01, "./x.sqsh" and "/x.sqsh" stay. Empty if there is none.
/// Errors: usage (an invalid name).
Result<std::string> image_of(const edf::Definition& definition);

/// Adds a definition to `request`, without its variables; flags win. Relative paths are below
/// `working_directory`. Logs requests for CSCS's own hooks to `log`. Errors: usage (no command, a
/// mount, a device), and those of find_image_file(); each after its place in the file.
Result<void> add_definition(const edf::Definition& definition, const std::string& working_directory,
                            Log& log, RunRequest& request);

/// The variables of a definition as environment entries: "NAME=value", or "NAME" for an empty
/// value, which removes the variable. References use variables of `image` ("K=V"), else the
/// caller's.
/// Errors: usage (neither has such a variable), after its place in the file.
Result<std::vector<std::string>> expand_variables(
    const Environment& caller, const std::vector<std::string>& image,
    const std::map<std::string, edf::Text>& variables);

}  // namespace berth::engine
