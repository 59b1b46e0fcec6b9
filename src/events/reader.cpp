// SPDX-License-Identifier: Apache-2.0
#include "events/reader.hpp"

#include <fcntl.h>

#include "events/journal.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::events {

void fields(auto& v, Event& e) {
  v.required("time", e.time_ns);
  v.required("type", e.type);
  v.required("action", e.action);
  v.required("id", e.id);
  v.optional("attributes", e.attributes);
}

std::optional<Event> parse_event(std::string_view line) {
  auto event = json::read<Event>(line, kJournalFile);
  return event.ok() ? std::optional<Event>(std::move(*event)) : std::nullopt;
}

Result<bool> Reader::open_next() {
  if (!begun_) {
    begun_ = true;
    auto older =
        TRY(sys::open_if_exists(sys::cwd(), path_ + kOlder, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (older) {
      file_ = std::move(*older);
      moved_ = true;
      return true;
    }
  }
  auto opened = TRY(sys::open_if_exists(sys::cwd(), path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (opened) file_ = std::move(*opened);
  return opened.has_value();
}

Result<bool> Reader::read_more() {
  text_.erase(0, at_);
  at_ = 0;
  if (text_.size() > kMaxEvent) text_.clear();  // not one of our lines
  std::vector<char> buffer(kMaxEvent);
  size_t count = TRY(sys::read_some(file_, buffer, path_));
  text_.append(buffer.data(), count);
  return count > 0;
}

std::optional<std::string> Reader::take_line() {
  size_t end = text_.find('\n', at_);
  if (end == text_.npos) return std::nullopt;
  std::string line = text_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

Result<std::optional<Event>> Reader::next() {
  while (true) {
    if (!file_ && !TRY(open_next())) return std::optional<Event>();
    while (auto line = take_line()) {
      if (auto event = parse_event(*line)) return event;
    }
    if (TRY(read_more())) continue;
    if (moved_) {
      file_.reset();
      moved_ = false;
      text_.clear();
      at_ = 0;
      continue;
    }
    struct stat ours = TRY(sys::stat_fd(file_, path_));
    auto named = TRY(sys::stat_entry(sys::cwd(), path_));
    moved_ = !named || named->st_ino != ours.st_ino;
    // A process that had it open when it was moved away may still write: read once more, a moment
    // later.
    return std::optional<Event>();
  }
}

}  // namespace berth::events
