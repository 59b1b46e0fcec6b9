// SPDX-License-Identifier: Apache-2.0
#include "events/journal.hpp"

#include <fcntl.h>

#include <chrono>

#include "json/fields.hpp"
#include "json/value.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::events {
namespace {

int64_t now() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::string line_of(const Event& event) {
  json::Object members = {{"time", json::Value(event.time_ns)},
                          {"type", json::Value(event.type)},
                          {"action", json::Value(event.action)},
                          {"id", json::Value(event.id)}};
  if (!event.attributes.empty()) {
    json::Object attributes;
    for (const auto& [name, value] : event.attributes) {
      attributes.emplace_back(name, json::Value(value));
    }
    members.emplace_back("attributes", json::Value(std::move(attributes)));
  }
  return json::dump(json::Value(std::move(members))) + "\n";
}

// Renames the journal if it is too long. If several processes try that, one does it, and the others
// notice that the path names another file.
Result<void> make_place(const std::string& path, const sys::Fd& file) {
  struct stat ours = TRY(sys::stat_fd(file, path));
  if (ours.st_size <= kMaxJournal) return {};
  if (!TRY(sys::try_lock(file, sys::LockMode::exclusive, path))) return {};
  auto named = TRY(sys::stat_entry(sys::cwd(), path));
  if (!named || named->st_ino != ours.st_ino) return {};
  return sys::rename(sys::cwd(), path, sys::cwd(), path + kOlder);
}

}  // namespace

Result<void> append(const std::string& file, Event event) {
  event.time_ns = now();
  std::string line = line_of(event);
  if (line.size() > kMaxEvent) {
    event.attributes.clear();
    line = line_of(event);
  }
  sys::Fd opened =
      TRY(sys::open_at(sys::cwd(), file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::write_all(opened, line, file));
  return make_place(file, opened);
}

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
  if (text_.size() > kMaxEvent) text_.clear();  // too long to be a line of ours
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
    // A process that opened the file before it was renamed may still write to it, so read once more
    // in the next call.
    return std::optional<Event>();
  }
}

}  // namespace berth::events
