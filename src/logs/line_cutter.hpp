// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "logs/entry.hpp"

namespace berth::logs {

/// Splits one output stream into the texts of entries. Pure.
class LineCutter {
 public:
  /// Calls `sink` with each complete text.
  template <class Sink>
  void feed(std::string_view bytes, const Sink& sink) {
    while (!bytes.empty()) {
      size_t newline = bytes.find('\n');
      size_t line = newline == std::string_view::npos ? bytes.size() : newline + 1;
      size_t take = std::min(line, kMaxPiece - rest_.size());
      std::string_view part = bytes.substr(0, take);
      bytes.remove_prefix(take);
      bool complete = part.back() == '\n' || rest_.size() + take == kMaxPiece;
      if (!complete) {
        rest_ += part;
      } else if (rest_.empty()) {
        sink(part);
      } else {
        rest_ += part;
        sink(std::string_view(rest_));
        rest_.clear();
      }
    }
  }

  /// Whether the next byte begins an entry.
  bool at_start() const { return rest_.empty(); }

  /// Call at the end of the stream: calls `sink` with the rest, which has no newline.
  template <class Sink>
  void finish(const Sink& sink) {
    if (!rest_.empty()) sink(std::string_view(rest_));
    rest_.clear();
  }

 private:
  std::string rest_;  ///< without a newline, shorter than kMaxPiece
};

}  // namespace berth::logs
