// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

/// Copies files between a container and the host, and exports a container's files.
namespace berth::engine {

/// One side of `cp`: "CONTAINER:PATH", a path of the host, or "-".
struct CopySide {
  std::string container;  ///< empty: the host
  std::string path;       ///< "-" of the host: a tar on standard input or output
  bool operator==(const CopySide&) const = default;
};
/// As docker distinguishes them: a path that starts with "/" or "." is a path of the host.
CopySide parse_copy_side(std::string_view text);

struct CopyOptions {
  bool archive = false;           ///< keep the owners, as far as our ids can represent them
  bool follow_link = false;       ///< if the source is a link, copy its target
  std::string working_directory;  ///< absolute; for paths of the host
};

/// Copies `from` to `to`; exactly one of them is a container. Paths of a container are resolved
/// inside its root: links cannot lead outside, even if they change meanwhile.
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
