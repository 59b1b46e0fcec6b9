// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/text.hpp"

namespace berth::cli {

enum class Stream { out, err };

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

/// Where text goes and comes from. main gives the real one; tests give one of their own.
class Terminal {
 public:
  virtual ~Terminal() = default;

  virtual bool is_terminal(Stream stream) const = 0;
  virtual bool input_is_terminal() const = 0;
  virtual ScreenSize size(Stream stream) const = 0;  ///< asked anew each time: windows are resized

  /// Text for people, which may hold what an image, a registry or another user has written. Where
  /// it is shown on a terminal every control character but newline and tab is escaped; a file or a
  /// pipe gets it as it is.
  void write(Stream stream, std::string_view text);
  /// What moves the cursor or paints, with all foreign text in it escaped, and what a container has
  /// written. Writes at once. The first failure is kept for written(), so that output needs no
  /// checks of its own and a full disk still ends in an error.
  virtual void write_as_is(Stream stream, std::string_view bytes) = 0;
  /// Errors: io (writing to `out` failed at some time).
  virtual Result<void> written() const = 0;

  /// One line from the terminal, without its newline. ask_secret: what is typed is not shown.
  /// Errors: not_found (there is no terminal), interrupted, io.
  virtual Result<std::string> ask(std::string_view prompt) = 0;
  virtual Result<std::string> ask_secret(std::string_view prompt) = 0;
  /// All of stdin, at most a few MiB.  Errors: io.
  virtual Result<std::string> read_input() = 0;
};

inline void Terminal::write(Stream stream, std::string_view text) {
  if (is_terminal(stream)) return write_as_is(stream, escape_controls(text, Lines::kept));
  write_as_is(stream, text);
}

}  // namespace berth::cli
