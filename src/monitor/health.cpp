// SPDX-License-Identifier: Apache-2.0
#include "monitor/health.hpp"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "json/value.hpp"
#include "logs/time.hpp"
#include "monitor/protocol.hpp"
#include "monitor/record.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::monitor {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

int64_t since_1970() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(since).count();
}

}  // namespace

std::optional<HealthCheck> parse_health_check(std::string_view text) {
  auto value = json::parse(text, kHealthCheckFile);
  if (!value.ok()) return std::nullopt;
  HealthCheck check;
  auto number = [&](std::string_view name) {
    const json::Value* member = value->find(name);
    const int64_t* found = member != nullptr ? member->get_if<int64_t>() : nullptr;
    return found != nullptr ? *found : 0;
  };
  const json::Value* test = value->find("Test");
  const json::Array* words = test != nullptr ? test->array() : nullptr;
  if (words == nullptr || words->empty()) return std::nullopt;
  for (const json::Value& word : *words) {
    if (word.string() == nullptr) return std::nullopt;
    check.command.push_back(*word.string());
  }
  // The sum of a time point and this must not overflow.
  constexpr nanoseconds kLongest = std::chrono::hours(24) * 3650;
  check.interval = std::min(nanoseconds(number("Interval")), kLongest);
  check.timeout = std::min(nanoseconds(number("Timeout")), kLongest);
  check.start_period = std::min(nanoseconds(number("StartPeriod")), kLongest);
  check.retries = number("Retries");
  if (check.interval.count() <= 0 || check.timeout.count() <= 0 || check.retries <= 0) {
    return std::nullopt;
  }
  return check;
}

void HealthState::add(HealthResult result, const HealthCheck& check, nanoseconds lived) {
  if (result.exit_code == 0) {
    failing_streak = 0;
    status = Status::healthy;
  } else if (status != Status::starting || lived >= check.start_period) {
    ++failing_streak;
    if (failing_streak >= check.retries) status = Status::unhealthy;
  }
  if (log.size() == kMaxHealthLog) log.erase(log.begin());
  log.push_back(std::move(result));
}

std::string_view HealthState::status_name() const {
  static constexpr std::string_view kNames[] = {"starting", "healthy", "unhealthy"};
  return kNames[static_cast<size_t>(status)];
}

std::string HealthState::text() const {
  json::Array entries;
  for (const HealthResult& result : log) {
    entries.emplace_back(json::Object{{"Start", json::Value(logs::time_text(result.start_ns))},
                                      {"End", json::Value(logs::time_text(result.end_ns))},
                                      {"ExitCode", json::Value(result.exit_code)},
                                      {"Output", json::Value(result.output)}});
  }
  return json::dump(json::Value(json::Object{{"Status", json::Value(status_name())},
                                             {"FailingStreak", json::Value(failing_streak)},
                                             {"Log", json::Value(std::move(entries))}}));
}

Health::Health(HealthCheck check, Runtime runtime, const sys::Fd& state)
    : check_(std::move(check)), runtime_(std::move(runtime)), state_(state) {
  next_ = Clock::now() + check_.interval;
  ignore(sys::replace_file(state_, kHealthFile, known_.text(), 0600));
}

Health::~Health() {
  if (process_) kill();
}

milliseconds Health::patience() const {
  auto left = std::chrono::ceil<milliseconds>(next_ - Clock::now());
  return std::clamp(left, milliseconds(0), milliseconds(std::chrono::hours(1)));
}

void Health::add_to(std::vector<pollfd>& entries) const {
  entries.push_back({output_ ? output_.get() : -1, POLLIN, 0});
  entries.push_back({process_ ? process_.pidfd().get() : -1, POLLIN, 0});
}

void Health::serve() {
  if (process_) {
    collect();
    auto status = process_.wait_for(milliseconds(0));
    if (status.ok() && *status) {
      collect();
      return end((*status)->shell_code());
    }
    if (!status.ok()) return end(1);
  }
  if (Clock::now() < next_) return;
  if (!process_) return begin();
  kill();
  result_.output = "Health check exceeded timeout (" +
                   std::to_string(std::chrono::duration<double>(check_.timeout).count()) + "s)";
  end(-1);
}

void Health::begin() {
  next_ = Clock::now() + check_.interval;
  // In a paused container no command can run; this is not a failure.
  if (is_paused(runtime_.files)) return;
  auto null = sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY);
  auto pipe = sys::make_pipe();
  if (!null.ok() || !pipe.ok() || !sys::set_nonblocking(pipe->read).ok()) return;
  ignore(sys::remove_entry(state_, kHealthPidFile));
  sys::SpawnOptions spawn;
  spawn.program = runtime_.program;
  spawn.args = runtime_.words;
  spawn.args.insert(spawn.args.end(), check_.command.begin(), check_.command.end());
  spawn.in = &*null;
  spawn.out = spawn.err = &pipe->write;
  result_ = HealthResult{since_1970(), 0, 0, {}};
  began_ = Clock::now();
  auto process = sys::spawn(spawn);
  if (!process.ok()) {
    result_.output = to_line(process.error());
    return end(-1);
  }
  process_ = std::move(*process);
  output_ = std::move(pipe->read);
  next_ = began_ + check_.timeout;
}

void Health::collect() {
  std::array<char, kMaxHealthOutput> buffer;
  // Limited, so that a fast writer does not keep us from other work.
  for (int pieces = 0; output_ && pieces < 64; ++pieces) {
    auto count = sys::read_some(output_, buffer, "output of the health check");
    if (!count.ok() && count.error().kind == Kind::busy) return;
    if (!count.ok() || *count == 0) return output_.reset();
    // Output beyond the limit is read, so that the check does not block, and discarded.
    size_t room = kMaxHealthOutput - std::min(kMaxHealthOutput, result_.output.size());
    result_.output.append(buffer.data(), std::min(room, *count));
    if (*count > room && !result_.output.ends_with("...")) result_.output += "...";
  }
}

void Health::end(int exit_code) {
  process_.release();
  output_.reset();
  result_.exit_code = exit_code;
  result_.end_ns = since_1970();
  known_.add(std::move(result_), check_, began_ - born_);
  result_ = HealthResult();
  ignore(sys::replace_file(state_, kHealthFile, known_.text(), 0600));
  next_ = Clock::now() + check_.interval;
}

// Kills the command too: killing only berth-runtime would leave it in the container.
void Health::kill() {
  auto text = sys::read_file_if_exists(state_, kHealthPidFile, 64);
  auto pid = text.ok() && *text ? parse_u64(trim(**text)) : std::nullopt;
  if (pid && *pid > 1) {
    auto pidfd = sys::open_pidfd(static_cast<pid_t>(*pid));
    if (pidfd.ok()) {
      sys::Process command(static_cast<pid_t>(*pid), std::move(*pidfd));
      ignore(command.signal(SIGKILL));
      command.release();
    }
  }
  process_ = sys::Process();
}

}  // namespace berth::monitor
