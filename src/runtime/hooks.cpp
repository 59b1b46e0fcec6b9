// SPDX-License-Identifier: Apache-2.0
#include "runtime/hooks.hpp"

#include <chrono>

#include "base/text.hpp"
#include "sys/process.hpp"

namespace berth::runtime {
namespace {

// A hook without a timeout may take its time, but not for ever: nobody would learn why.
constexpr std::chrono::seconds kLongestHook{600};
constexpr size_t kMaxOutput = size_t{64} << 10;

Result<void> run_hook(const oci::Hook& hook, const std::string& state) {
  sys::SpawnOptions options;
  options.program = hook.path;
  options.args = hook.args.empty() ? std::vector<std::string>{hook.path} : hook.args;
  // Not the environment of the runtime and not that of the container, which an image writes: a
  // hook that inherits LD_PRELOAD from there is the image's (CVE-2025-23266).
  options.env = hook.env;
  // Outside every root file system that the container could have prepared.
  options.working_directory = "/";
  std::chrono::milliseconds deadline =
      hook.timeout ? std::chrono::seconds(*hook.timeout) : kLongestHook;
  sys::CommandOutput output =
      TRY(sys::run_command(std::move(options), state, deadline, kMaxOutput));
  int code = output.status.shell_code();
  if (code == 0) return {};
  std::string reason(trim(output.err));
  return make_error(Kind::denied, "run " + quote(hook.path) + ": exit status " +
                                      std::to_string(code) +
                                      (reason.empty() ? "" : ": " + escape_controls(reason)));
}

}  // namespace

Result<void> run_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                       const std::string& state) {
  for (const auto& hook : hooks) {
    TRY_CTX(run_hook(hook, state), "cannot run the " + stage + " hook");
  }
  return {};
}

void run_all_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                   const std::string& state, Log& log) {
  for (const auto& hook : hooks) {
    auto done = run_hook(hook, state);
    if (!done.ok()) log.warn(stage + " hook: " + to_line(done.error()) + "; ignoring");
  }
}

}  // namespace berth::runtime
