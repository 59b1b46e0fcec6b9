// SPDX-License-Identifier: Apache-2.0
// Profiles in files, which may be handwritten.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "node/profile.hpp"

namespace berth::node {

/// The format of a profile.
enum class Form { json, toml };

/// The format by the file's extension, ".json" or ".toml". Errors: usage.
Result<Form> form_of(const std::string& path);

/// Parses a profile and checks it, but does not call fill(): the result has only what the file has.
/// `document` is its name in errors. Ignores unknown members.
/// Errors: corrupt (invalid JSON or TOML, a wrong type, a fault found by check()), unsupported (a
/// later version).
Result<Profile> read_written(std::string_view text, Form form, std::string_view document);

/// Parses a profile, checks it and calls fill(). Errors: those of read_written().
Result<Profile> read_profile(std::string_view text, Form form, std::string_view document);

/// The profile in a file of at most 1 MiB; the profile's name is the file name without the
/// extension.
/// Errors: usage (another extension), not_found, denied, and those of read_profile(). Errors name
/// the path.
Result<Profile> load_profile(const std::string& path);

/// The content and form of a file, for read_written().
struct ProfileText {
  std::string text;
  Form form = Form::json;
};
/// Errors: those of load_profile().
Result<ProfileText> read_text(const std::string& path);

/// All profiles of a directory, by name: its .json and .toml files, except hidden ones.
/// Errors: not_found (no directory, or no profile in it), exists (two profiles with the same name),
/// and those of load_profile() for the first invalid file.
Result<std::vector<Profile>> load_fleet(const std::string& directory);

/// The content of a profile file. TOML omits empty members.
std::string write_profile(const Profile& profile, Form form);

/// Writes the file atomically: a reader sees the old file or the new one.
/// Errors: usage (another extension), denied, io.
Result<void> save_profile(const Profile& profile, const std::string& path);

}  // namespace berth::node
