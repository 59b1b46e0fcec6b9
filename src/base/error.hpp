// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// The place in our source where an error was made. clang 14 with the library of g++ 12 has no
/// std::source_location, so this is an equivalent that uses built-ins of both compilers.
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
  exists,       ///< the object already exists
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

/// A failure to report to the user. `what` is the operation and its object ("open '/dev/nvidia2'"),
/// lower case, no period; `context` says what each calling level wanted ("cannot …"), innermost
/// first; `hint` is a command or a file to look at.
struct Error {
  Kind kind = Kind::bug;
  int sys_errno = 0;  ///< 0 when no system call failed
  std::string what;
  std::string hint;
  std::vector<std::string> context;
  SourceLocation where = SourceLocation::current();

  /// The error with one more level of context.
  Error with_context(std::string text) &&;
  /// The error with `text` as the hint, unless it has a hint already.
  Error with_hint(std::string text) &&;
};

/// Builds an error that no system call caused.
Error make_error(Kind kind, std::string what, std::string hint = {},
                 SourceLocation where = SourceLocation::current());

/// Builds an error from a saved errno, which determines the kind (ENOENT → not_found, …).
Error sys_error(int saved_errno, std::string what,
                SourceLocation where = SourceLocation::current());

/// The errno of a failed system call, read before the message is built: building a message may
/// allocate, which may change errno. If errno were an argument next to the message, it could be
/// read too late.
struct SavedErrno {
  int value;
  /// sys_error() with the saved errno.
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
/// Control characters in foreign strings are escaped, so that the result stays one line.
std::string to_line(const Error& error);

}  // namespace berth
