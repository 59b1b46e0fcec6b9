// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/core/terminal.hpp"

namespace berth::cli {

enum class LogFormat { text, json };
enum class Verbosity { normal, debug };

/// Everything printed on stderr besides a verb's own output: "berth: warning: …", and the one error
/// line. With LogFormat::json it prints one object per line.
class Report final : public Log {
 public:
  Report(Terminal& terminal, std::string_view program) : terminal_(terminal), program_(program) {}

  void configure(LogFormat format, Verbosity verbosity) {
    format_ = format;
    verbosity_ = verbosity;
  }

  void warn(const std::string& text) override;
  void debug(const std::string& text) override;
  bool is_debug() const override { return verbosity_ == Verbosity::debug; }

  /// For main only. Verbosity::debug adds the origin of the error.
  void error(const Error& error);

  /// Prints one line: why the program in a container failed, and what to try.
  void reason(const std::string& why, const std::string& remedy);

  /// Prints warnings above `lines` while these are redrawn. Null: no lines are redrawn any more.
  void above(LiveLines* lines) { lines_ = lines; }

 private:
  void say(std::string_view level, const std::string& text);

  Terminal& terminal_;
  std::string program_;
  LogFormat format_ = LogFormat::text;
  Verbosity verbosity_ = Verbosity::normal;
  LiveLines* lines_ = nullptr;
};

/// "src/engine/run/run.cpp:42": paths of the build machine are cut.
std::string place_text(const SourceLocation& where);

}  // namespace berth::cli
