// SPDX-License-Identifier: Apache-2.0
#include "monitor/log.hpp"

#include <fcntl.h>

#include <chrono>

#include "sys/file.hpp"

namespace berth::monitor {

Result<Log> Log::open(const sys::Fd& directory) {
  Log log;
  log.file_ = TRY(sys::open_at(directory, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  return log;
}

void Log::add(FromMonitor stream, std::string_view bytes) {
  Stream& target = streams_[stream == FromMonitor::errors ? 1 : 0];
  target.cutter.feed(bytes, [&](std::string_view piece) { write(piece, target.name); });
}

void Log::finish() {
  for (Stream& stream : streams_) {
    stream.cutter.finish([&](std::string_view piece) { write(piece, stream.name); });
  }
}

void Log::write(std::string_view piece, std::string_view stream) {
  auto now = std::chrono::system_clock::now();
  ignore(sys::write_all(file_, log_entry(piece, stream, now), "log"));
}

}  // namespace berth::monitor
