// SPDX-License-Identifier: Apache-2.0
#include "monitor/record.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "json/value.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"

namespace berth::monitor {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// One short write at the end of the file: a reader sees the line or does not.
Result<void> append(const std::string& files, json::Object members) {
  std::string path = files + "/container.json";
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY | O_APPEND | O_NOFOLLOW));
  TRY(sys::write_all(file, "\n" + json::dump(json::Value(std::move(members))), path));
  return sys::close_checked(std::move(file), path);
}

int64_t number(const json::Value& line, std::string_view name) {
  const json::Value* value = line.find(name);
  const int64_t* found = value ? value->get_if<int64_t>() : nullptr;
  return found ? *found : 0;
}

}  // namespace

Result<void> append_start(const std::string& files, const Start& start) {
  auto ticks = sys::process_start_time(start.pid);
  auto boot = sys::boot_id();
  return append(files, {{"started_ns", json::Value(now())},
                        {"pid", json::Value(int64_t{start.pid})},
                        // It may have ended in this moment.
                        {"start_ticks", json::Value(ticks.ok() ? *ticks : uint64_t{0})},
                        {"boot_id", json::Value(boot.ok() ? *boot : std::string())},
                        {"restarts", json::Value(int64_t{start.restarts})}});
}

Result<void> append_exit(const std::string& files, const Exit& exit) {
  json::Object members = {{"exit_code", exit.code ? json::Value(*exit.code) : json::Value()},
                          {"finished_ns", json::Value(now())}};
  if (exit.restarting == Restarting::yes) members.emplace_back("restarting", json::Value(true));
  if (exit.oom_killed) members.emplace_back("oom_killed", json::Value(true));
  if (!exit.error.empty()) members.emplace_back("error", json::Value(exit.error));
  if (exit.stopped) members.emplace_back("stopped", json::Value(true));
  return append(files, std::move(members));
}

Known read_lines(const std::string& files, int32_t pid) {
  Known known;
  auto text = sys::read_file(sys::cwd(), files + "/container.json");
  if (!text.ok()) return known;
  for (std::string_view line : split(*text, '\n')) {
    auto value = json::parse(line, "container.json");
    if (!value.ok()) continue;
    if (value->find("started_ns") != nullptr) {
      known.started = number(*value, "pid") == pid;
      known.restarts = static_cast<int>(number(*value, "restarts"));
      known.restarting = false;
    } else if (value->find("finished_ns") != nullptr) {
      known.restarting = value->find("restarting") != nullptr;
    }
  }
  return known;
}

std::string read_name(const std::string& files) {
  std::string name;
  auto text = sys::read_file(sys::cwd(), files + "/container.json");
  if (!text.ok()) return name;
  for (std::string_view line : split(*text, '\n')) {
    auto value = json::parse(line, "container.json");
    const json::Value* found = value.ok() ? value->find("name") : nullptr;
    const std::string* said = found ? found->get_if<std::string>() : nullptr;
    if (said != nullptr) name = *said;
  }
  return name;
}

bool is_paused(const std::string& files) {
  auto text = sys::read_file(sys::cwd(), files + "/container.json");
  bool paused = false;
  if (!text.ok()) return paused;
  for (std::string_view line : split(*text, '\n')) {
    auto value = json::parse(line, "container.json");
    if (!value.ok()) continue;
    if (value->find("started_ns") != nullptr) paused = false;
    const json::Value* found = value->find("paused");
    if (found != nullptr) paused = *found == json::Value(true);
  }
  return paused;
}

}  // namespace berth::monitor
