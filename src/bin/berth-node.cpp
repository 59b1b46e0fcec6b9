// SPDX-License-Identifier: Apache-2.0
// berth-node [FLAG…]: offers this node's GPUs to the kubelet, until it gets SIGTERM. Started by
// `berth node run`, as a systemd unit, or in a DaemonSet.
//
// Runs as: root. It talks to the kubelet alone, over unix sockets, and executes only `berth`.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "cli/core/flags.hpp"
#include "kube/agent/agent.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/console.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"

namespace berth::kube {
namespace {

constexpr const char* kUsage =
    "usage: berth-node [--config FILE] [--kubelet-dir DIR] [--driver-root DIR] [--config-dir DIR]\n"
    "                  [--state DIR] [--cdi-dir DIR] [--hand-over cdi|annotations|both] "
    "[--debug]\n";

class NodeLog final : public Log {
 public:
  void warn(const std::string& text) override { say("warning: " + text); }
  void debug(const std::string& text) override {
    if (debug_) say(text);
  }
  bool is_debug() const override { return debug_; }
  void say(const std::string& text) {
    // Without a reader an error cannot be reported.
    ignore(sys::write_stream(STDERR_FILENO, "berth-node: " + escape_controls(text) + "\n"));
  }
  bool& debug_flag() { return debug_; }

 private:
  bool debug_ = false;
};

Result<void> run(const std::vector<std::string>& words, NodeLog& log) {
  AgentOptions options;
  std::string hand_over = "both";
  cli::FlagTable flags{
      cli::file_flag("config", 0,
                     "Read the resources from this file, not from /etc/berth/node.toml",
                     &options.config),
      cli::directory_flag("kubelet-dir", 0, "The kubelet's directory", &options.kubelet_dir),
      cli::directory_flag("driver-root", 0, "Look for drivers below this directory",
                          &options.driver_root),
      cli::directory_flag("config-dir", 0, "The directory of the site's policy",
                          &options.config_dir),
      cli::directory_flag("state", 0, "The directory of the inventory", &options.state_dir),
      cli::directory_flag("cdi-dir", 0, "Write CDI files here", &options.cdi_dir),
      cli::choice_flag("hand-over", "HOW", "How containers get their devices", &hand_over,
                       {"cdi", "annotations", "both"}),
      {"debug", 0, "", "Print what is done", &log.debug_flag()}};
  cli::Parsed parsed = TRY(cli::parse(flags, cli::FlagsEnd::at_double_dash, words, "berth-node"));
  if (parsed.help) return sys::write_stream(STDOUT_FILENO, kUsage);
  TRY(cli::check_arity({0, 0}, parsed.arguments.size(), "berth-node", kUsage));
  for (const std::string* path : {&options.config, &options.kubelet_dir, &options.driver_root,
                                  &options.config_dir, &options.state_dir, &options.cdi_dir}) {
    if (path->empty() || path->starts_with('/')) continue;
    return make_error(Kind::usage, "expected an absolute path, got " + quote(*path));
  }
  options.how = {hand_over != "annotations", hand_over != "cdi"};
  // Before any thread starts, so that no thread takes the signals.
  sys::Fd stop = TRY(sys::receive_signals({SIGTERM, SIGINT}));
  return run_agent(std::move(options), stop, log);
}

}  // namespace
}  // namespace berth::kube

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-node")) return EXIT_FAILURE;
  using namespace berth;
  // gRPC starts a dozen threads. An arena for each of them would take most of the memory.
  mallopt(M_ARENA_MAX, 2);
  sys::IgnoredSignal broken_pipe(SIGPIPE);
  kube::NodeLog log;
  try {
    auto done = kube::run({argv + 1, argv + argc}, log);
    if (done.ok()) return EXIT_SUCCESS;
    log.say(to_line(done.error()));
  } catch (const std::exception& exception) {
    log.say(std::string("unexpected: ") + exception.what());
  }
  return EXIT_FAILURE;
}
