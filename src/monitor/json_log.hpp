// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace berth::monitor {

/// Docker's limit for one entry of a log.
inline constexpr size_t kMaxPiece = 16384;

/// Cuts one stream of output into pieces: lines with their newline, and parts of at most kMaxPiece
/// bytes of a longer line, which is known by the newline that it lacks.
class LineCutter {
 public:
  using Sink = std::function<void(std::string_view)>;

  void feed(std::string_view bytes, const Sink& sink);
  /// The end of the stream: what is left has no newline.
  void finish(const Sink& sink);

 private:
  std::string rest_;  ///< without a newline, shorter than kMaxPiece
};

/// One entry of docker's json-file format: {"log":"…\n","stream":"stdout","time":"…"} and a
/// newline. Bytes that are no UTF-8 become U+FFFD.
std::string log_entry(std::string_view piece, std::string_view stream,
                      std::chrono::system_clock::time_point time);

/// "2026-11-20T12:00:00.123456789Z"
std::string rfc3339_nanoseconds(std::chrono::system_clock::time_point time);

}  // namespace berth::monitor
