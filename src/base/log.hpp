// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth {

/// Receives messages of library code that are not errors. A warning ends with "ignoring" or "using
/// … instead". Log or return an error, never both.
class Log {
 public:
  virtual ~Log() = default;
  virtual void warn(const std::string& text) = 0;
  virtual void debug(const std::string& text) = 0;
  /// Whether debug() messages are shown. If not, callers skip those that are costly to build.
  virtual bool is_debug() const { return false; }
};

/// Discards all messages.
class NullLog final : public Log {
 public:
  void warn(const std::string&) override {}
  void debug(const std::string&) override {}
};

}  // namespace berth
