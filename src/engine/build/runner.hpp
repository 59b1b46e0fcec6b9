// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/build/steps.hpp"
#include "engine/context/context.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// Parallel builds. A signal, or the end of this process, ends them with all of their processes.
class BuildRunner {
 public:
  /// From now on only wait() receives SIGINT, SIGTERM and SIGHUP.
  static Result<BuildRunner> make(const Context& context);
  BuildRunner(BuildRunner&&) = default;
  BuildRunner& operator=(BuildRunner&&) = default;
  ~BuildRunner() { end_all(); }

  /// `log`: the file for the output of the programs; empty: our stderr.
  /// Errors: not_found, denied, io.
  Result<void> start(size_t key, std::vector<BuildStep> steps, const std::string& log);
  size_t running() const { return builds_.size(); }

  struct Ended {
    size_t key = 0;
    std::optional<Error> error;  ///< of the step that failed
  };
  /// Returns the next build that ends.  Errors: interrupted (by a signal; all builds have ended),
  /// io.
  Result<Ended> wait();
  /// Errors: interrupted, if a signal has arrived since.
  Result<void> check_signals();

 private:
  struct Build {
    size_t key = 0;
    std::deque<BuildStep> steps;  // the first one runs
    std::string log;
    sys::Fd output;
    sys::Process process;
  };
  BuildRunner() = default;
  Result<void> start_step(Build& build);
  /// Nothing: the build continues.
  std::optional<Ended> advance(Build& build, const sys::ExitStatus& status);
  void end_all();

  const Context* context_ = nullptr;
  sys::Fd signals_;
  std::list<Build> builds_;
};

}  // namespace berth::engine
