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

/// Whether a text has one of the sections of a houdini.ini, which no other TOML has.
bool is_houdini(std::string_view text);

/// Converts the file to rules for policy.d with the same effect: a line for each key with an
/// equivalent, and a comment with the reason for each without.
/// Errors: corrupt (a line that is neither section nor key; longer than 1 MiB).
Result<std::string> import_houdini(std::string_view text, std::string_view document);

/// "A=1,2|B=x" → A "1,2", B "x". The separator is '|' (in its code), ';' (in its document) or ','
/// (in its first version): the first of these that precedes a name and '=', and only there. Text
/// before the first name is dropped.
std::vector<std::pair<std::string, std::string>> split_environment(std::string_view text);

}  // namespace berth::policy
