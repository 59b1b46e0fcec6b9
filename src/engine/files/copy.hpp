// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

/// Files between a container and the host, and a container's files as a whole.
namespace berth::engine {

/// One side of `cp`: "CONTAINER:PATH", a path of the host, or "-".
struct CopySide {
  std::string container;  ///< empty: the host
  std::string path;       ///< "-" of the host: a tar on standard input or output
  bool operator==(const CopySide&) const = default;
};
/// As docker tells the two apart: a path that starts with "/" or "." is the host's.
CopySide parse_copy_side(std::string_view text);

struct CopyOptions {
  bool archive = false;           ///< owners as at the source, where they can be expressed
  bool follow_link = false;       ///< of a source that is a link
  std::string working_directory;  ///< absolute: of the host's paths
};

/// Copies `from` to `to`, of which one is a container's. Paths of a container are what it sees:
/// links in it lead nowhere else, even if they change meanwhile.
/// Errors: not_found (container, path), usage (none or both are containers; a directory onto a
/// file and the reverse), denied (a read-only place), io.
Result<void> copy_files(const Context& context, const CopySide& from, const CopySide& to,
                        const CopyOptions& options);

/// Writes the files of a container, without its volumes, as one tar to `output`: a file, or
/// "/dev/fd/1".
/// Errors: not_found, unsupported (its root is a directory of the host), io.
Result<void> export_container(const Context& context, std::string_view reference,
                              const std::string& output);

}  // namespace berth::engine
