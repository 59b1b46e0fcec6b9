// SPDX-License-Identifier: Apache-2.0
#include "events/journal.hpp"

#include <fcntl.h>

#include <chrono>

#include "json/value.hpp"
#include "sys/file/file.hpp"

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

// If several processes find it too long, one moves it away: the others notice that it is another
// file.
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

}  // namespace berth::events
