// SPDX-License-Identifier: Apache-2.0
// Profiles in files, which people write too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// How a profile is written down.
enum class Form { json, toml };

/// Of a file's ending: ".json" or ".toml".  Errors: usage.
Result<Form> form_of(const std::string& path);

/// A profile as it is written, checked but nothing filled in: what a file says is not what follows.
/// `document` names it in errors. Unknown members are ignored.
/// Errors: corrupt (no JSON or TOML, a wrong type, what check() refuses), unsupported (of a later
/// version).
Result<Profile> read_written(std::string_view text, Form form, std::string_view document);

/// The profile of a text, complete.  Errors: those of read_written().
Result<Profile> read_profile(std::string_view text, Form form, std::string_view document);

/// The profile in a file of at most 1 MiB; its name is the file's without the ending.
/// Errors: usage (another ending), not_found, denied, and those of read_profile(), with the path.
Result<Profile> load_profile(const std::string& path);

/// The text and form of a file, for read_written().  Errors: as load_profile().
struct ProfileText {
  std::string text;
  Form form = Form::json;
};
Result<ProfileText> read_text(const std::string& path);

/// All profiles of a directory, by name: its files that end in .json or .toml, but hidden ones.
/// Errors: not_found (no directory, or no profile in it), exists (two of one name), and those of
/// load_profile(), of the first file that has one.
Result<std::vector<Profile>> load_fleet(const std::string& directory);

/// A profile as a file has it. TOML leaves out what is empty.
std::string write_profile(const Profile& profile, Form form);

/// Writes it in one go: a reader sees the old file or the new one.
/// Errors: usage (another ending), denied, io.
Result<void> save_profile(const Profile& profile, const std::string& path);

}  // namespace berth::node
