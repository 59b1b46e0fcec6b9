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
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/child/activation.hpp"
#include "runtime/child/child.hpp"
#include "runtime/state/bundle.hpp"
#include "runtime/state/protocol.hpp"
#include "runtime/state/state.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {

/// Whether the caller returns at once, or stays until the process ends.
enum class Detach { no, yes };

/// What makes the cgroup: this program, systemd, or nothing (the container stays in the cgroup of
/// the caller).
enum class CgroupManager { cgroupfs, systemd, disabled };

/// Where the caller receives the pid and the descriptors of a new process; empty: nowhere.
struct ProcessTakers {
  std::string pid_file;
  std::string console_socket;
  std::string pidfd_socket;
};
/// Sends the pid and the descriptors there; closes `console`, the pseudo-TTY's master, if it was
/// sent.
Result<void> give_process(const ProcessTakers& takers, const sys::Process& process,
                          sys::Fd& console);

/// The arguments of create and run.
struct LaunchRequest : ProcessTakers {
  std::string id;
  std::string bundle = ".";
  std::string config{kConfigFile};  ///< as read_bundle() takes it
  int preserve_fds = 0;             ///< besides those of `activation`
  Activation activation{};
  bool no_pivot = false;
  CgroupManager cgroup_manager = CgroupManager::cgroupfs;
  bool no_new_keyring = false;
  bool keep = false;                  ///< keep the container after a run in the foreground
  bool await_start = false;           ///< for `create`: wait for `start`
  Detach detach = Detach::yes;        ///< no: killed when we die (Prepared::die_with_parent)
  std::optional<uint64_t> caller_fd;  ///< a socket that says how much of the bundle exists
  /// A socket that receives the pid (int32_t) of a container that is ready, and says when its
  /// program may run; for a detached run.
  std::optional<uint64_t> gate_fd;
  /// A memfd that receives the rights of the container's processes (slurm::Rights and the seccomp
  /// program) and is sealed before the container runs: for processes that join by descriptors.
  std::optional<uint64_t> rights_fd;
  /// Adds what the caller's flags give a container (such as GPUs) to the config of a bundle, before
  /// anything is decided; may be empty. The paths are absolute.
  std::function<Result<void>(oci::Spec& spec, const std::string& bundle, const std::string& rootfs)>
      amend{};
  /// Called when the first process, which `state` names, is in its cgroups and has not begun.
  /// Changes that the callback makes to the state are kept.
  std::function<Result<void>(State& state)> placed{};
  bool of_engine = false;  ///< as in plan::Container
  /// Called when all is decided and nothing is made yet; may be empty.
  std::function<Result<void>()> decided{};
};

/// How the caller learns early that the program runs, and which side caused a failure.
struct Report {
  sys::Fd fd{};      ///< closed as soon as the program runs
  sys::Fd caller{};  ///< a socket that receives the exit code (int32_t) before the cleanup
  Stage stage = Stage::engine;
};

/// A console socket is required exactly when the container has a terminal and is detached. The
/// messages are runc's. Errors: usage.
Result<void> check_console(bool terminal, Detach detach, const std::string& socket);

/// A container with a process that runs its program, or waits for `start`.
struct Launched {
  std::unique_ptr<Entry> entry;  ///< holds the lock of the state directory
  State state;
  plan::Plan plan;
  CgroupSet cgroups;
  sys::Process process;
  sys::Fd console;  ///< the terminal's master; empty without a terminal
};

/// Facts of this machine that the plan of `spec` depends on.
plan::HostFacts host_facts(const oci::Spec& spec);

/// Reads the config of `bundle` and makes the plan; starts nothing.
Result<plan::Plan> plan_bundle(const LaunchRequest& request);

/// Makes the container, as far as the request asks. On failure nothing of the container is left: no
/// process, no cgroup, no directory.
/// Errors: those of oci::parse_spec, plan::make, CgroupSet::create and of the steps in the child.
Result<Launched> launch(const Store& store, const LaunchRequest& request, Report& report, Log& log);

/// Restores the processes of a container, instead of a first process that carries out its plan.
class Reviver {
 public:
  virtual ~Reviver() = default;
  /// Makes the process that will restore the container and that waits for revive(); `cgroup` as in
  /// make_child().
  virtual Result<Child> prepare(const Launched& launched, int cgroup) = 0;
  /// Lets that process continue once it is in the container's cgroups, and waits for its end;
  /// returns the container's first process.
  virtual Result<sys::Process> revive(Child& child, const Launched& launched) = 0;
  /// Lets the restored processes run; called after the hooks.
  virtual Result<void> resume(const sys::Process& process, const Launched& launched) = 0;
};

/// launch() for a checkpointed container. Of the hooks it runs prestart and createRuntime, as runc
/// does.
Result<Launched> relaunch(const Store& store, const LaunchRequest& request, Reviver& reviver,
                          Report& report, Log& log);

/// Removes everything of a container from the machine: processes, cgroups, poststop hooks, state
/// directory.
Result<void> dispose(const Store& store, const State& state, CgroupSet cgroups, Log& log);

}  // namespace berth::runtime
