// SPDX-License-Identifier: Apache-2.0
#include "engine/build/runner.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iterator>

#include "base/text.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::seconds kGrace{10};

/// "buildah build": leaves out the program that creates its mount namespace.
std::string step_name(const BuildStep& step) {
  std::string name = step.program.substr(step.program.rfind('/') + 1);
  if (name == "unshare") name = "buildah";
  return name;
}

}  // namespace

Result<BuildRunner> BuildRunner::make(const Context& context) {
  BuildRunner runner;
  runner.context_ = &context;
  runner.signals_ = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGHUP}));
  return runner;
}

Result<void> BuildRunner::start(size_t key, std::vector<BuildStep> steps, const std::string& log) {
  Build build;
  build.key = key;
  build.steps.assign(std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
  build.log = log;
  if (!log.empty()) {
    build.output =
        TRY(sys::open_at(sys::cwd(), log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  }
  TRY(start_step(build));
  builds_.push_back(std::move(build));
  return {};
}

Result<void> BuildRunner::start_step(Build& build) {
  BuildStep& step = build.steps.front();
  if (!step.id_file.empty()) {
    std::string id = TRY(sys::read_file(sys::cwd(), step.id_file, 256));
    for (std::string& word : step.arguments) {
      if (word == "{id}") word = trim(id);
    }
  }
  sys::Fd nothing = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDONLY));
  sys::Fd standard_error(STDERR_FILENO);
  const sys::Fd& output = build.log.empty() ? standard_error : build.output;
  sys::SpawnOptions options;
  options.program = step.program;
  options.args = step.arguments;
  options.in = &nothing;
  options.out = &output;
  options.err = &output;
  options.working_directory = step.working_directory;
  options.new_session = true;  // a process group of its own, which can be ended as a whole
  options.env = with_variables(*context_, step);
  auto process = sys::spawn(options);
  standard_error.release();  // not ours to close
  build.process = TRY(std::move(process));
  return {};
}

std::optional<BuildRunner::Ended> BuildRunner::advance(Build& build,
                                                       const sys::ExitStatus& status) {
  if (status.shell_code() != 0) {
    std::string how = status.signal != 0 ? "was ended by signal " + std::to_string(status.signal)
                                         : "ended with status " + std::to_string(status.code);
    // With a single id a process cannot change to another id, nor set its groups.
    std::string hint = context_->identity == Identity::single
                           ? "subordinate ids, which RUN needs: " + sys::how_to_install("uidmap") +
                                 ", and lines in /etc/subuid and /etc/subgid"
                           : "";
    return Ended{
        build.key,
        make_error(Kind::io, "build the image: " + step_name(build.steps.front()) + " " + how,
                   std::move(hint))};
  }
  build.steps.pop_front();
  if (build.steps.empty()) return Ended{build.key, std::nullopt};
  auto started = start_step(build);
  if (started.ok()) return std::nullopt;
  return Ended{build.key, std::move(started).error()};
}

Result<void> BuildRunner::check_signals() {
  auto signal = TRY(sys::read_signal(signals_));
  if (!signal) return {};
  end_all();
  return make_error(Kind::interrupted, "stopped by a signal");
}

Result<BuildRunner::Ended> BuildRunner::wait() {
  while (true) {
    TRY(check_signals());
    std::vector<pollfd> entries{{signals_.get(), POLLIN, 0}};
    for (const Build& build : builds_) entries.push_back({build.process.pidfd().get(), POLLIN, 0});
    TRY(sys::poll(entries, std::nullopt));
    for (auto build = builds_.begin(); build != builds_.end(); ++build) {
      auto status = TRY(build->process.wait_for(std::chrono::milliseconds(0)));
      if (!status) continue;
      auto ended = advance(*build, *status);
      if (ended) {
        builds_.erase(build);
        return std::move(*ended);
      }
    }
  }
}

void BuildRunner::end_all() {
  // A program may have ended already.
  for (Build& build : builds_) {
    if (build.process) ignore(sys::send_signal(-build.process.pid(), SIGTERM));
  }
  for (Build& build : builds_) {
    if (!build.process) continue;
    auto ended = build.process.wait_for(kGrace);
    ignore(sys::send_signal(-build.process.pid(), SIGKILL));
    if (ended.ok() && !*ended) ignore(build.process.wait());
  }
  builds_.clear();
}

}  // namespace berth::engine
