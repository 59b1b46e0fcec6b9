// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::engine {

/// One -v. A source that is missing becomes a directory, as docker does.
struct Volume {
  std::string source;       ///< absolute path on the host
  std::string destination;  ///< absolute path in the container
  bool read_only = false;
  std::string propagation = "rprivate";  ///< rprivate, private, rshared, shared, rslave, slave
  bool operator==(const Volume&) const = default;
};

/// One --tmpfs.
struct Tmpfs {
  std::string destination;           ///< absolute path in the container
  std::vector<std::string> options;  ///< mount options as given
  bool operator==(const Tmpfs&) const = default;
};

/// "SRC:DST[:options]". Options: ro, rw, the propagation names, and z, Z, which are accepted and
/// mean nothing without SELinux. "~" is the shell's: a source that starts with "./" or is "." is
/// taken below `working_directory`.
/// Errors: usage (form, destination not absolute or "/", unknown option), unsupported (a source
/// that is a volume name: named volumes do not exist yet).
Result<Volume> parse_volume(std::string_view text, std::string_view working_directory);

/// "DST[:option,option…]".  Errors: usage.
Result<Tmpfs> parse_tmpfs(std::string_view text);

}  // namespace berth::engine
