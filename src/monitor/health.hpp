// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::monitor {

/// A health check: the command to run in the container, and when.
struct HealthCheck {
  std::vector<std::string> command;
  std::chrono::nanoseconds interval{0};
  std::chrono::nanoseconds timeout{0};
  std::chrono::nanoseconds start_period{0};  ///< failures in this period count only after a success
  /// This many failures in a row make it unhealthy; usually 3:
  /// engine/container/health_settings.cpp.
  int64_t retries = 0;
};

/// Parses the text of kHealthCheckFile, which berth writes. Nothing if it has another form.
std::optional<HealthCheck> parse_health_check(std::string_view text);

struct HealthResult {
  int64_t start_ns = 0;  ///< since 1970, as is end_ns
  int64_t end_ns = 0;
  int exit_code = 0;  ///< -1: it took too long
  std::string output;
};

/// The health of a container, in docker's terms.
struct HealthState {
  enum class Status { starting, healthy, unhealthy };
  Status status = Status::starting;
  int64_t failing_streak = 0;
  std::vector<HealthResult> log;  ///< the newest last, at most kMaxHealthLog

  /// `lived`: how long the container had run when the check began. Pure.
  void add(HealthResult result, const HealthCheck& check, std::chrono::nanoseconds lived);
  /// {"Status":"healthy","FailingStreak":0,"Log":[…]}, as `inspect` shows it.
  std::string text() const;
  std::string_view status_name() const;  ///< "starting", "healthy", "unhealthy"
};
inline constexpr size_t kMaxHealthLog = 5;
inline constexpr size_t kMaxHealthOutput = 4096;

/// Runs the check of a container periodically, and updates kHealthFile.
class Health {
 public:
  /// `words`: the arguments before the command, "berth-runtime … exec …"; `program`: the path of
  /// berth-runtime. `files`: the directory of container.json, which shows whether the container is
  /// paused.
  struct Runtime {
    std::string program;
    std::vector<std::string> words;
    std::string files;
  };
  Health(HealthCheck check, Runtime runtime, const sys::Fd& state);
  /// Ends a running check.
  ~Health();
  Health(Health&&) = delete;

  /// The time until serve() has work.
  std::chrono::milliseconds patience() const;
  /// Appends the descriptors to poll.
  void add_to(std::vector<pollfd>& entries) const;
  /// Starts or ends a check if it is time.
  void serve();
  std::string_view status() const { return known_.status_name(); }
  /// The child process that runs the check; -1: none.
  pid_t pid() const { return process_ ? process_.pid() : -1; }

 private:
  using Clock = std::chrono::steady_clock;
  void begin();
  void collect();
  void end(int exit_code);
  void kill();

  HealthCheck check_;
  Runtime runtime_;
  const sys::Fd& state_;
  HealthState known_;
  Clock::time_point born_ = Clock::now();
  Clock::time_point next_;  ///< the next check, or the deadline of the running one
  Clock::time_point began_;
  sys::Process process_;
  sys::Fd output_;
  HealthResult result_;
};

inline constexpr const char* kHealthPidFile = "health.pid";

}  // namespace berth::monitor
