// SPDX-License-Identifier: Apache-2.0
// houdini.ini, the operator's file of a patched dockerd that adds mounts, variables, devices and a
// user to containers.  https://github.com/qnib/moby, branch houdini: HOUDINI.md, pkg/houdini
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth::policy {

/// Whether a text has one of the sections of a houdini.ini, which no TOML of others has.
bool is_houdini(std::string_view text);

/// The rules for policy.d that do what dockerd does with this file: a line for each key that has an
/// equivalent, and a comment that says why for each that has none.
/// Errors: corrupt (a line that is neither section nor key; longer than 1 MiB).
Result<std::string> import_houdini(std::string_view text, std::string_view document);

/// "A=1,2|B=x" → A "1,2", B "x". What separates is '|' (as the code has it), ';' (as its document
/// has it) or ',' (as it was first shown): the first of these that stands before a name and '=',
/// and there alone. What stands before the first name is left out.
std::vector<std::pair<std::string, std::string>> split_environment(std::string_view text);

}  // namespace berth::policy
