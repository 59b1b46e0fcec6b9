// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/core/terminal.hpp"

namespace berth::cli::test {

/// Keeps what is written; its size and kind are what a test sets.
class FakeTerminal final : public Terminal {
 public:
  bool is_terminal(Stream) const override { return terminal; }
  bool input_is_terminal() const override { return terminal; }
  ScreenSize size(Stream) const override { return screen; }
  void write_as_is(Stream stream, std::string_view bytes) override {
    (stream == Stream::out ? out : err) += bytes;
    ++writes;
  }
  Result<void> written() const override { return {}; }
  Result<std::string> ask(std::string_view) override { return input; }
  Result<std::string> ask_secret(std::string_view) override { return input; }
  Result<std::string> read_input() override { return input; }

  bool terminal = true;
  ScreenSize screen{100, 24};
  std::string input;
  std::string out, err;
  int writes = 0;
};

}  // namespace berth::cli::test
