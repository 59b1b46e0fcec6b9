// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth {

/// Receives library code's messages that are not errors. A warning ends with "ignoring" or "using …
/// instead". Log or return an error, never both.
class Log {
 public:
  virtual ~Log() = default;
  virtual void warn(const std::string& text) = 0;
  virtual void debug(const std::string& text) = 0;
  /// Whether anybody reads what debug() gets: what costs to be said is left out otherwise.
  virtual bool is_debug() const { return false; }
};

/// Discards all messages.
class NullLog final : public Log {
 public:
  void warn(const std::string&) override {}
  void debug(const std::string&) override {}
};

}  // namespace berth
