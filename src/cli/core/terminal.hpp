// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

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

  /// Writes at once. The first failure is kept for written(), so that output needs no checks of
  /// its own and a full disk still ends in an error.
  virtual void write(Stream stream, std::string_view text) = 0;
  /// Errors: io (writing to `out` failed at some time).
  virtual Result<void> written() const = 0;

  /// One line from the terminal, without its newline. ask_secret: what is typed is not shown.
  /// Errors: not_found (there is no terminal), interrupted, io.
  virtual Result<std::string> ask(std::string_view prompt) = 0;
  virtual Result<std::string> ask_secret(std::string_view prompt) = 0;
  /// All of stdin, at most a few MiB.  Errors: io.
  virtual Result<std::string> read_input() = 0;
};

}  // namespace berth::cli
