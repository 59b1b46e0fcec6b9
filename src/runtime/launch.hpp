// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: config.json, which the json reader
// bounds and plan::make() validates.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/activation.hpp"
#include "runtime/bundle.hpp"
#include "runtime/cgroup.hpp"
#include "runtime/child.hpp"
#include "runtime/protocol.hpp"
#include "runtime/state.hpp"
#include "sys/fd.hpp"
#include "sys/process.hpp"

namespace berth::runtime {

/// Whether the caller goes on, or stays with the process to its end.
enum class Detach { no, yes };

/// What makes the cgroup: this program, systemd, or nothing (the container stays in that of its
/// caller).
enum class CgroupManager { cgroupfs, systemd, disabled };

/// Where the caller gets what it needs of a new process; empty: nowhere.
struct ProcessTakers {
  std::string pid_file;
  std::string console_socket;
  std::string pidfd_socket;
};
/// Gives it to them; `console`, the terminal's master, is let go where it was.
Result<void> give_process(const ProcessTakers& takers, const sys::Process& process,
                          sys::Fd& console);

/// What is asked for with create and run.
struct LaunchRequest : ProcessTakers {
  std::string id;
  std::string bundle = ".";
  std::string config{kConfigFile};  ///< as read_bundle() takes it
  int preserve_fds = 0;             ///< beside those of `activation`
  Activation activation{};
  bool no_pivot = false;
  CgroupManager cgroup_manager = CgroupManager::cgroupfs;
  bool no_new_keyring = false;
  bool keep = false;                  ///< after a run in the foreground the container is left
  bool await_start = false;           ///< create
  Detach detach = Detach::yes;        ///< no: it dies with us
  std::optional<uint64_t> caller_fd;  ///< a socket that says how much of the bundle is there
  /// A socket that is told the pid (int32_t) of a container that is ready, and says when its
  /// program may run; for a run that is detached.
  std::optional<uint64_t> gate_fd;
  /// A memfd that gets what a process of the container may do (slurm::Rights and the seccomp
  /// program) and is sealed before the container runs: for processes that join by descriptors.
  std::optional<uint64_t> rights_fd;
  /// Adds to the config of a bundle, before anything is decided, what its caller may have; none:
  /// nothing. The paths are absolute.
  std::function<Result<void>(oci::Spec& spec, const std::string& bundle, const std::string& rootfs)>
      amend{};
  /// Called when the first process is where it belongs and has not begun: `state` names it. What it
  /// adds to the state is kept.
  std::function<Result<void>(State& state)> placed{};
  bool of_engine = false;  ///< as plan::Container has it
  /// Called when all is decided and nothing is made; none: goes on at once.
  std::function<Result<void>()> decided{};
};

/// How the caller learns early that the program runs, and which side a failure is of.
struct Report {
  sys::Fd fd{};      ///< closed as soon as the program runs
  sys::Fd caller{};  ///< a socket that is told the exit code (int32_t) before all is cleaned up
  Stage stage = Stage::engine;
};

/// A terminal goes to the console socket exactly when nobody stays to serve it. The words are those
/// of runc. Errors: usage.
Result<void> check_console(bool terminal, Detach detach, const std::string& socket);

/// A container whose process runs its program, or waits for `start`.
struct Launched {
  std::unique_ptr<Entry> entry;  ///< keeps the lock of the state directory
  State state;
  plan::Plan plan;
  CgroupSet cgroups;
  sys::Process process;
  sys::Fd console;  ///< the terminal's master, empty without one
};

/// Facts of this machine that the plan of `spec` depends on.
plan::HostFacts host_facts(const oci::Spec& spec);

/// Reads the config of `bundle` and decides what would be done; nothing is started.
Result<plan::Plan> plan_bundle(const LaunchRequest& request);

/// Makes the container up to the point that the request asks for. On failure nothing of it is left:
/// no process, no cgroup, no directory.
/// Errors: those of oci::parse_spec, plan::make, CgroupSet::create and of the steps in the child.
Result<Launched> launch(const Store& store, const LaunchRequest& request, Report& report, Log& log);

/// Brings back the processes of a container, in place of a first process that carries out its plan.
class Reviver {
 public:
  virtual ~Reviver() = default;
  /// Makes the process that will do so and waits to be let go; `cgroup` as in make_child().
  virtual Result<Child> prepare(const Launched& launched, int cgroup) = 0;
  /// Lets it go once it is in the container's cgroups, until it has ended; gives the container's
  /// first process.
  virtual Result<sys::Process> revive(Child& child, const Launched& launched) = 0;
  /// After the hooks.
  virtual Result<void> resume(const sys::Process& process, const Launched& launched) = 0;
};

/// launch() for a container that has been running before. Of the hooks, prestart and createRuntime
/// are called, as runc does.
Result<Launched> relaunch(const Store& store, const LaunchRequest& request, Reviver& reviver,
                          Report& report, Log& log);

/// Undoes what a container has on the machine: processes, cgroups, poststop hooks, state directory.
Result<void> dispose(const Store& store, const State& state, CgroupSet cgroups, Log& log);

}  // namespace berth::runtime
