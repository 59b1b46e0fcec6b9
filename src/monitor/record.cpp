// SPDX-License-Identifier: Apache-2.0
#include "monitor/record.hpp"

#include <fcntl.h>

#include "json/fields.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::monitor {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

Result<void> append(const std::string& files, const std::string& line) {
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), files, O_PATH | O_DIRECTORY));
  return record::append(directory, line);
}

/// An unreadable file counts as empty.
record::Lines read(const std::string& files) {
  auto file = sys::open_at(sys::cwd(), files + "/" + record::kFile, O_RDONLY | O_NOFOLLOW);
  if (!file.ok()) return {};
  auto lines = record::read(*file);
  return lines.ok() ? std::move(*lines) : record::Lines();
}

}  // namespace

Result<void> append_start(const std::string& files, const Start& start) {
  auto ticks = sys::process_start_time(start.pid);
  auto boot = sys::boot_id();
  record::Start line;
  line.started_ns = now();
  line.pid = start.pid;
  line.start_ticks = ticks.ok() ? *ticks : 0;  // 0: the process has just ended
  line.boot_id = boot.ok() ? *boot : std::string();
  line.restarts = start.restarts;
  return append(files, json::write(line));
}

Result<void> append_exit(const std::string& files, const Exit& exit) {
  record::Exit line;
  line.exit_code = exit.code;
  line.finished_ns = now();
  line.restarting = exit.restarting == Restarting::yes;
  line.oom_killed = exit.oom_killed;
  line.error = exit.error;
  line.stopped = exit.stopped;
  return append(files, json::write(line));
}

Known read_lines(const std::string& files, int32_t pid) {
  record::Lines lines = read(files);
  Known known;
  known.started = lines.start && lines.start->pid == pid;
  known.restarts = lines.start ? lines.start->restarts : 0;
  known.restarting = lines.exit && lines.exit->restarting;
  return known;
}

std::string read_name(const std::string& files) {
  record::Lines lines = read(files);
  return lines.record ? lines.record->name : "";
}

bool is_paused(const std::string& files) {
  return read(files).paused;
}

}  // namespace berth::monitor
