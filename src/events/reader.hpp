// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "events/event.hpp"
#include "sys/fd/fd.hpp"

namespace berth::events {

/// Reads a journal from the oldest event that is kept, and later additions, even when it is
/// replaced. Skips malformed lines.
class Reader {
 public:
  /// `file`: absolute; it need not exist yet.
  explicit Reader(std::string file) : path_(std::move(file)) {}

  /// Nothing when there are no more at the moment.  Errors: io.
  Result<std::optional<Event>> next();

 private:
  Result<bool> open_next();
  Result<bool> read_more();
  std::optional<std::string> take_line();

  std::string path_;
  sys::Fd file_;
  bool begun_ = false;
  bool moved_ = false;  ///< another file has its name: only a write in progress may still add to it
  std::string text_;
  size_t at_ = 0;  ///< start of the next line in text_
};

/// A line of the journal; nothing for other text. Pure.
std::optional<Event> parse_event(std::string_view line);

}  // namespace berth::events
