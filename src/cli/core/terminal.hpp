// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace berth::cli {

enum class Stream { out, err };

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

/// The terminal of the program. main passes the real terminal, tests pass a fake.
class Terminal {
 public:
  virtual ~Terminal() = default;

  virtual bool is_terminal(Stream stream) const = 0;
  virtual bool input_is_terminal() const = 0;
  virtual ScreenSize size(Stream stream) const = 0;  ///< queried each time: windows are resized

  /// Writes text for people, which may contain text from an image, a registry or another user. On a
  /// terminal every control character but newline and tab is escaped; a file or a pipe gets it
  /// unchanged.
  void write(Stream stream, std::string_view text);
  /// Writes output of containers, and text with control sequences in which the caller has escaped
  /// all foreign text. Writes at once. The first failure is kept for written(), so that callers
  /// need no checks and a full disk still ends in an error.
  virtual void write_as_is(Stream stream, std::string_view bytes) = 0;
  /// Errors: io (writing to `out` failed at some time).
  virtual Result<void> written() const = 0;

  /// Reads one line from the terminal; returns it without its newline. ask_secret() turns the echo
  /// off.
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

/// The number of rows that `lines` take when the window is `columns` wide.
size_t rows_taken(const std::vector<std::string>& lines, size_t columns);

/// Lines at the end of a terminal's output that are redrawn. The cursor is below them and visible
/// at all times, so that nothing has to be restored when the program is killed.
class LiveLines {
 public:
  LiveLines(Terminal& terminal, Stream stream) : terminal_(terminal), stream_(stream) {}

  /// The available size: one column less than the window, because terminals disagree on the cursor
  /// position after a full line.
  ScreenSize room() const;
  /// No line may be wider than room().
  void draw(std::vector<std::string> lines);
  /// Removes the lines while `write` prints other lines, on either stream, then draws them again.
  void aside(const std::function<void()>& write);

 private:
  Terminal& terminal_;
  Stream stream_;
  std::vector<std::string> drawn_;
};

}  // namespace berth::cli
