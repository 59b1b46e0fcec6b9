// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Fills empty members with the defaults: /var/lib/berth and /run/berth for the machine's root,
/// else $XDG_DATA_HOME/berth (~/.local/share/berth) and $XDG_RUNTIME_DIR/berth. If XDG_RUNTIME_DIR
/// names no directory of the user: /tmp/berth-<uid>. Appends the additional stores of
/// BERTH_ADDITIONAL_STORES. Makes relative paths absolute.
/// `user`: none for root of the initial user namespace, else the caller's id in the parent of the
/// caller's user namespace: root inside `unshare -r` is an ordinary user.
/// Errors: usage (an ordinary user without HOME and XDG_DATA_HOME).
Result<Paths> complete_paths(Paths given, const Environment& environment,
                             std::optional<unsigned> user);

/// Creates the directories of `paths` with mode 0700. Existing directories must belong to the
/// effective user or root. No other user may write there, and no group except the caller's own.
/// Errors: denied (that check, no permission), io.
Result<void> make_directories(const Paths& paths);

/// `path` as an absolute path: a relative one is below `directory`, the caller's working directory;
/// "." is that directory itself. An empty `directory` means that the working directory was removed.
/// Errors: not_found (relative to a removed directory).
Result<std::string> absolute_path(std::string_view path, std::string_view directory);

/// Whether `path` is `directory` or a path below it; both are absolute. Pure.
bool is_at_or_below(std::string_view path, std::string_view directory);

/// The absolute path of the program `name` in the caller's PATH; empty: not found.
std::string find_in_path(const Context& context, const std::string& name);

}  // namespace berth::engine
