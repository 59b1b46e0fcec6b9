// SPDX-License-Identifier: Apache-2.0
#include "monitor/json_log.hpp"

#include <array>
#include <cstdio>
#include <ctime>

#include "json/value.hpp"

namespace berth::monitor {

void LineCutter::feed(std::string_view bytes, const Sink& sink) {
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
      sink(rest_);
      rest_.clear();
    }
  }
}

void LineCutter::finish(const Sink& sink) {
  if (!rest_.empty()) sink(rest_);
  rest_.clear();
}

std::string rfc3339_nanoseconds(std::chrono::system_clock::time_point time) {
  using std::chrono::nanoseconds;
  auto since = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
  time_t seconds = static_cast<time_t>(since / 1'000'000'000);
  struct tm parts {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text;
  size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%09lldZ",
                static_cast<long long>(since % 1'000'000'000));
  return text.data();
}

std::string log_entry(std::string_view piece, std::string_view stream,
                      std::chrono::system_clock::time_point time) {
  std::string entry = "{\"log\":";
  entry += json::dump(json::Value(piece));
  entry += ",\"stream\":\"";
  entry += stream;
  entry += "\",\"time\":\"";
  entry += rfc3339_nanoseconds(time);
  entry += "\"}\n";
  return entry;
}

}  // namespace berth::monitor
