// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "events/event.hpp"
#include "sys/fd/fd.hpp"

namespace berth::events {

/// Reads a journal from the oldest event that is kept, and what is added to it meanwhile, also when
/// it makes place for a new one. Lines that make no sense are passed over.
class Reader {
 public:
  /// `file`: absolute; it need not be there yet.
  explicit Reader(std::string file) : path_(std::move(file)) {}

  /// Nothing when there are no more for now.  Errors: io.
  Result<std::optional<Event>> next();

 private:
  Result<bool> open_next();
  Result<bool> read_more();
  std::optional<std::string> take_line();

  std::string path_;
  sys::Fd file_;
  bool begun_ = false;
  bool moved_ = false;  ///< another file has its name: nobody but who is in the middle of it adds
  std::string text_;
  size_t at_ = 0;  ///< where in text_ the next line begins
};

/// A line of the journal; nothing for other text. Pure.
std::optional<Event> parse_event(std::string_view line);

}  // namespace berth::events
