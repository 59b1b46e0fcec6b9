// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// The place in our source where an error was made. std::source_location does not exist for clang
/// 14 with g++ 12's library, so this is an equivalent with built-ins that both compilers have.
struct SourceLocation {
  const char* file = "";
  int line = 0;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return SourceLocation{file, line};
  }
};

/// What the caller can do about a failure; never which subsystem failed.
enum class Kind {
  usage,        ///< the request itself is wrong: tell the user
  not_found,    ///< the object does not exist
  exists,       ///< the object exists already
  denied,       ///< a permission or a policy forbids it
  unsupported,  ///< this kernel, build or format cannot do it: take the fallback
  busy,         ///< it is in use: try again later
  corrupt,      ///< foreign bytes are invalid
  interrupted,  ///< a signal or a deadline ended it
  io,           ///< the system call failed: disk, network, kernel
  bug,          ///< our mistake
};

/// The spelling used in JSON output and between our programs, e.g. "not_found".
std::string_view kind_name(Kind kind);

/// The inverse of kind_name(); an unknown spelling is Kind::bug.
Kind kind_from_name(std::string_view name);

/// A failure on its way to the user. `what` is the operation and its object ("open
/// '/dev/nvidia2'"), lower case, no period; `context` has the intention of each level above
/// ("cannot …"), innermost first; `hint` is a command or a file to look at.
struct Error {
  Kind kind = Kind::bug;
  int sys_errno = 0;  ///< 0 when no system call failed
  std::string what;
  std::string hint;
  std::vector<std::string> context;
  SourceLocation where = SourceLocation::current();

  /// A copy with one more level of context around it.
  Error with_context(std::string text) &&;
  /// A copy with `text` as the hint, unless a deeper level has set a better one.
  Error with_hint(std::string text) &&;
};

/// Builds an error that no system call caused.
Error make_error(Kind kind, std::string what, std::string hint = {},
                 SourceLocation where = SourceLocation::current());

/// Builds an error from a saved errno; the kind follows from it (ENOENT → not_found, …).
Error sys_error(int saved_errno, std::string what,
                SourceLocation where = SourceLocation::current());

/// The errno of a failed system call, read before the text about it is built: building text may
/// allocate, and so change errno. As an argument beside the text it could be read too late.
struct SavedErrno {
  int value;
  /// sys_error() with it.
  Error error(std::string what, SourceLocation where = SourceLocation::current()) const;
};

/// `return errno_now().error("open " + quote(path));`: the part before the dot is evaluated first.
SavedErrno errno_now();

/// The kind for an errno value.
Kind kind_from_errno(int value);

/// The exit status for a command that could not be started, as of a shell and of docker: 127 for a
/// missing program, 126 for one that cannot be executed.
int command_status(const Error& error);

/// The one line for people, outermost context first:
/// "cannot start container 'c1': open '/dev/nvidia2': Permission denied; try: berth doctor gpu".
/// Control characters of foreign text are escaped, so that it stays one line.
std::string to_line(const Error& error);

}  // namespace berth
