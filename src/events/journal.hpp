// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::events {

// Events on this machine. The process that causes an event records it, since there is no daemon to
// do so. The names of types and actions are those of `docker events`.

struct Event {
  std::string type;    ///< "container", "image", "volume"
  std::string action;  ///< "start", "health_status: healthy", "exec_create: sh -c ls"
  std::string id;      ///< 64 digits of a container, "sha256:…" or a name of an image, a name
  /// For a container: all of them in its event "create", only new ones in its other events.
  std::map<std::string, std::string> attributes = {};
  int64_t time_ns = 0;  ///< since 1970; append() sets it
};

/// Below the state directory, since events from before the last boot are not needed.
inline constexpr const char* kJournalFile = "events";
/// The suffix of a journal that was replaced.
inline constexpr const char* kOlder = ".1";
/// In bytes. A larger journal is replaced by a new one; one old journal is kept.
inline constexpr int64_t kMaxJournal = 1 << 20;
/// In bytes. A larger event is recorded without attributes.
inline constexpr size_t kMaxEvent = size_t{64} << 10;

/// Appends a line with the present time to the journal at the absolute path `file`. Any number of
/// processes may do so at once, because a line is one write(2) at the end of the file.
/// Errors: io, not_found (the directory).
Result<void> append(const std::string& file, Event event);

/// Reads a journal from the oldest event that is kept, and then the events that are added, even
/// when the journal is replaced. Skips malformed lines.
class Reader {
 public:
  /// `file`: absolute; it need not exist yet.
  explicit Reader(std::string file) : path_(std::move(file)) {}

  /// Nothing if there is no further event yet.  Errors: io.
  Result<std::optional<Event>> next();

 private:
  Result<bool> open_next();
  Result<bool> read_more();
  std::optional<std::string> take_line();

  std::string path_;
  sys::Fd file_;
  bool begun_ = false;
  bool moved_ = false;  ///< the file was replaced: only a write in progress may add to it
  std::string text_;
  size_t at_ = 0;  ///< start of the next line in text_
};

/// A line of the journal; nothing for another string. Pure.
std::optional<Event> parse_event(std::string_view line);

}  // namespace berth::events
