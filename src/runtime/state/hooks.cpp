// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/hooks.hpp"

#include <fcntl.h>

#include <chrono>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {
namespace {

// A hook without a timeout may take long, but not for ever, because then no error would say why the
// container does not start.
constexpr std::chrono::seconds kLongestHook{600};
constexpr size_t kMaxOutput = size_t{64} << 10;

Result<void> append(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  constexpr int kAdd = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY;
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, kAdd, 0600));
  return sys::write_all(file, text, path);
}

Result<void> run_hook(const std::string& stage, const oci::Hook& hook, const std::string& state,
                      const HookPlace& place) {
  sys::SpawnOptions options;
  options.program = hook.path;
  options.args = hook.args.empty() ? std::vector<std::string>{hook.path} : hook.args;
  // A hook on the host never gets the container's environment, which comes from an image: through
  // LD_PRELOAD the image would control the hook (CVE-2025-23266).
  options.env = hook.env;
  if (!hook.env && !place.inherits) options.env = place.env;
  bool entered =
      sys::open_at(sys::cwd(), place.directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK).ok();
  options.working_directory = entered ? place.directory : "/";
  std::chrono::milliseconds deadline =
      hook.timeout ? std::chrono::seconds(*hook.timeout) : kLongestHook;
  std::string context = "cannot run the " + stage + " hook";
  sys::CommandOutput output =
      TRY_CTX(sys::run_command(std::move(options), state, deadline, kMaxOutput), context);
  TRY_CTX(append(place.output_file, output.out), context);
  TRY_CTX(append(place.error_file, output.err), context);
  int code = output.status.shell_code();
  if (code == 0) return {};
  std::string reason(trim(output.err));
  return make_error(Kind::denied, "the " + stage + " hook failed with exit code " +
                                      std::to_string(code) + ": " + quote(hook.path) +
                                      (reason.empty() ? "" : ": " + escape_controls(reason)));
}

}  // namespace

HookPlace place_on_host(const State& state) {
  HookPlace place{state.bundle, true};
  if (oci::may_be_images(state.annotations)) return place;
  auto said = [&](const char* annotation) {
    auto found = state.annotations.find(annotation);
    return found == state.annotations.end() ? std::string() : found->second;
  };
  place.output_file = said("run.oci.hooks.stdout");
  place.error_file = said("run.oci.hooks.stderr");
  return place;
}

Result<void> run_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                       const std::string& state, const HookPlace& place) {
  for (const auto& hook : hooks) {
    TRY(run_hook(stage, hook, state, place));
  }
  return {};
}

void run_all_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                   const std::string& state, const HookPlace& place, Log& log) {
  for (const auto& hook : hooks) {
    auto done = run_hook(stage, hook, state, place);
    if (!done.ok()) log.warn(to_line(done.error()) + "; ignoring");
  }
}

}  // namespace berth::runtime
