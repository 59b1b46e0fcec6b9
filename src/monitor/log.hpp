// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "monitor/json_log.hpp"
#include "monitor/protocol.hpp"
#include "sys/fd.hpp"

namespace berth::monitor {

/// What a container has written, on disk. A full disk costs entries and never the container.
class Log {
 public:
  /// Opens or makes the log in `directory`.  Errors: io.
  static Result<Log> open(const sys::Fd& directory);

  /// A piece of one of its streams, in the order it came.
  void add(FromMonitor stream, std::string_view bytes);
  /// The container has ended: what is left of its streams has no newline.
  void finish();

 private:
  struct Stream {
    std::string_view name;
    LineCutter cutter;
  };
  void write(std::string_view piece, std::string_view stream);

  sys::Fd file_;
  std::array<Stream, 2> streams_ = {{{"stdout", {}}, {"stderr", {}}}};
};

}  // namespace berth::monitor
