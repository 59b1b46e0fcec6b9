// SPDX-License-Identifier: Apache-2.0
// houdini.ini, the configuration of a patched dockerd that adds mounts, variables, devices and a
// user to containers.  https://github.com/qnib/moby, branch houdini: HOUDINI.md, pkg/houdini
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth::policy {

/// Whether the text has a section that only a houdini.ini has.
bool is_houdini(std::string_view text);

/// Converts the file to rules for policy.d with the same effect: a line for each key that has an
/// equivalent, and for every other key a comment with the reason.
/// Errors: corrupt (a line that is neither a section nor a key; a text longer than 1 MiB).
Result<std::string> import_houdini(std::string_view text, std::string_view document);

/// "A=1,2|B=x" → A "1,2", B "x". The separator is '|' (in houdini's code), ';' (in its
/// documentation) or ',' (in its first version): the first in this order that occurs before a name
/// and '='. It only separates where a name and '=' follow. Text before the first name is dropped.
std::vector<std::pair<std::string, std::string>> split_environment(std::string_view text);

}  // namespace berth::policy
