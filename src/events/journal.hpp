// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::events {

// Events on this machine, recorded by the process that caused them: no daemon would know of them.
// The words are docker's (docker events).

struct Event {
  std::string type;    ///< "container", "image", "volume"
  std::string action;  ///< "start", "health_status: healthy", "exec_create: sh -c ls"
  std::string id;      ///< 64 digits of a container, "sha256:…" or a name of an image, a name
  std::map<std::string, std::string> attributes = {};  ///< of a container: only new ones
  int64_t time_ns = 0;                                 ///< since 1970; append() sets it
};

/// Below the state directory: events from before the last boot are not needed.
inline constexpr const char* kJournalFile = "events";
/// The suffix of a journal that was replaced.
inline constexpr const char* kOlder = ".1";
/// A larger journal is replaced by a new one, in bytes: at most two are kept.
inline constexpr int64_t kMaxJournal = 1 << 20;
/// A larger event loses its attributes, in bytes.
inline constexpr size_t kMaxEvent = size_t{64} << 10;

/// Appends a line to the journal at `file`, absolute, with the present time. Any number of
/// processes may do so at once: a line is one write at the end of the file.
/// Errors: io, not_found (the directory).
Result<void> append(const std::string& file, Event event);

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
