// SPDX-License-Identifier: Apache-2.0
#include "runtime/container.hpp"

#include <fcntl.h>
#include <signal.h>

#include <chrono>

#include "base/text.hpp"
#include "runtime/cgroup/stats.hpp"
#include "runtime/engine_scope.hpp"
#include "runtime/foreground.hpp"
#include "runtime/state/find.hpp"
#include "runtime/state/hooks.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"

namespace berth::runtime {
namespace {

constexpr std::chrono::seconds kDeath{10};

Result<void> signal_first(const State& state, int signal) {
  sys::Process process = TRY(first_process(state));
  auto sent = process.signal(signal);
  process.release();  // not our child
  return sent;
}

/// Undoes freezes, which keep killed processes from dying.
void let_die(const Found& found) {
  found.cgroups.thaw_below();
  auto processes = processes_of(found);
  if (processes.ok()) CgroupSet::leave_frozen(*processes);
}

Result<void> kill_and_wait(const Found& found) {
  auto process = first_process(found.state);
  auto gone = [](const Error& error) { return error.kind == Kind::not_found; };
  if (!process.ok()) return gone(process.error()) ? Result<void>() : std::move(process).error();
  sys::Fd handle = TRY(sys::duplicate(process->pidfd()));
  auto sent = process->signal(SIGKILL);
  process->release();  // not our child
  if (!sent.ok()) return gone(sent.error()) ? Result<void>() : std::move(sent);
  // In v1 a frozen process does not die. In v2 it dies, but other processes may stay, frozen.
  if (found.status == Status::paused) TRY(found.cgroups.freeze(CgroupSet::Freeze::thaw));
  let_die(found);
  if (TRY(sys::await_end(handle, kDeath))) return {};
  return make_error(Kind::busy,
                    "kill process " + std::to_string(found.state.pid) + ": still there after 10 s");
}

// Waits for the answer of the container's first process: first "ready", which acknowledges our
// message, then either a report of a failure or, when the process executes the program, the end of
// the connection.
Result<void> await_program(const Channel& channel, Report& report) {
  TRY(channel.expect(Message::ready));
  auto incoming = TRY(channel.receive());
  if (!incoming) return {};
  report.stage = incoming->report.stage;
  return to_error(incoming->report);
}

Result<void> wake(const Entry& entry, Report& report) {
  std::string path = sys::fd_path(entry.fd()) + "/" + kStartSocket;
  Channel channel(TRY(sys::connect_unix(path, sys::SocketType::messages)));
  TRY(sys::remove_entry(entry.fd(), kStartSocket));
  return await_program(channel, report);
}

constexpr char kDecide = 'd';  // means: the bundle's config exists; decide, but make nothing yet

Result<char> await_word(const sys::Fd& caller) {
  char word = 0;
  auto heard = TRY_CTX(sys::receive_message(caller, &word, 1), "cannot wait for the caller");
  if (heard.size == 0) return make_error(Kind::interrupted, "wait for the caller: it has ended");
  return word;
}

/// Takes over the inherited descriptor `number`, given by `flag`.
Result<sys::Fd> take_descriptor(uint64_t number, const std::string& flag) {
  constexpr uint64_t kMost = 1'000'000;
  if (number > kMost)
    return make_error(Kind::usage, flag + ": more descriptors than a process can have");
  sys::Fd given(static_cast<int>(number));
  auto taken = sys::duplicate(given);  // the copy closes on exec, unlike the inherited descriptor
  if (!taken.ok()) given.release();
  return TRY_CTX(std::move(taken), "cannot use " + flag);
}

/// The caller starts us before it has written the whole bundle: waits until the bundle is complete,
/// or its config exists (kDecide). Then the plan is made, and request.decided waits for the rest.
Result<void> await_bundle(const sys::Fd& caller, LaunchRequest& request) {
  if (TRY(await_word(caller)) != kDecide) return {};
  request.decided = [&caller]() -> Result<void> {
    TRY(await_word(caller));
    return {};
  };
  return {};
}

}  // namespace

Result<void> create(const Store& store, LaunchRequest request, Report& report, Log& log) {
  request.await_start = true;
  Launched launched = TRY(launch(store, request, report, log));
  launched.process.release();
  return {};
}

Result<void> start(const Store& store, const std::string& id, Report& report, Log& log) {
  Found found = TRY(find(store, id));
  const State& state = found.state;
  if (found.status != Status::created) {
    return make_error(Kind::usage, "container " + quote(id) + " is " +
                                       std::string(status_name(found.status)) + ", not created");
  }
  TRY(wake(found.entry, report));
  report.fd.reset();
  auto hooked = run_hooks("poststart", state.hooks.poststart, public_state(state, "running"),
                          place_on_host(state));
  if (hooked.ok()) return {};
  // runtime-spec runtime.md "Lifecycle": "If any poststart hook fails, the runtime MUST generate an
  // error, ... stop the container, and continue the lifecycle at step 12 [delete]".
  ignore(kill_and_wait(found));
  ignore(dispose(store, state, std::move(found.cgroups), log));
  return hooked;
}

/// create() and start(). In between waits until the process at the other end of the socket
/// --gate-fd allows the start.
Result<void> run_through_gate(const Store& store, LaunchRequest request, Report& report, Log& log) {
  sys::Fd gate = TRY(take_descriptor(*request.gate_fd, "--gate-fd"));
  request.await_start = true;
  Launched launched = TRY(launch(store, request, report, log));
  int32_t pid = launched.process.pid();
  auto pass = [&]() -> Result<void> {
    TRY(sys::send_message(gate, &pid, sizeof pid, sys::Fd()));
    TRY(await_word(gate));
    TRY(wake(*launched.entry, report));
    report.fd.reset();
    return run_hooks("poststart", launched.state.hooks.poststart,
                     public_state(launched.state, "running"), place_on_host(launched.state));
  };
  auto passed = pass();
  if (passed.ok()) {
    launched.process.release();
    return {};
  }
  launched.process = sys::Process();
  ignore(dispose(store, launched.state, std::move(launched.cgroups), log));
  return passed;
}

Result<int> run(const Store& store, LaunchRequest request, Detach detach, Report& report,
                Log& log) {
  if (request.caller_fd) {
    report.caller = TRY(take_descriptor(*request.caller_fd, "--caller-fd"));
    TRY(await_bundle(report.caller, request));
  }
  request.await_start = false;
  request.detach = detach;
  if (request.gate_fd && detach == Detach::yes) {
    TRY(run_through_gate(store, std::move(request), report, log));
    return 0;
  }
  // Signals are caught before the clone, so that none is lost.
  sys::Fd signals = detach == Detach::no ? TRY(catch_signals()) : sys::Fd();
  Launched launched = TRY(launch(store, request, report, log));
  report.fd.reset();
  if (detach == Detach::yes) {
    launched.process.release();
    return 0;
  }
  auto status = stay(launched.process, signals, std::move(launched.console));
  launched.process = sys::Process();
  if (status.ok() && report.caller) {
    // A caller that has ended does not need the status.
    int32_t code = status->shell_code();
    ignore(sys::send_message(report.caller, &code, sizeof code, sys::Fd()));
  }
  if (request.keep) {
    sys::ExitStatus kept = TRY(std::move(status));
    return kept.shell_code();
  }
  auto updated = sys::stat_entry(launched.entry->fd(), kUpdatedMark);
  if (updated.ok() && *updated) {
    auto state = launched.entry->read();
    if (state.ok()) launched.state = std::move(*state);
    auto cgroups = cgroups_of(launched.state);
    if (cgroups.ok()) launched.cgroups = std::move(*cgroups);
  }
  auto disposed = dispose(store, launched.state, std::move(launched.cgroups), log);
  sys::ExitStatus ended = TRY(std::move(status));
  if (!disposed.ok()) log.warn(to_line(disposed.error()) + "; ignoring");
  return ended.shell_code();
}

Result<int> read_signal(std::string_view text) {
  if (text == "0") return 0;  // kill(2): only checks that the process exists
  auto number = sys::signal_number(text);
  if (!number) return make_error(Kind::usage, "unknown signal " + quote(text));
  return *number;
}

Result<void> kill(const Store& store, const std::string& id, int signal, Whom whom) {
  Found found = TRY(find(store, id));
  bool is_paused = found.status == Status::paused;
  // Killing the first process means killing the container; callers of runc rely on that.
  if (signal == SIGKILL && outlives_first_process(found)) whom = Whom::all;
  if (whom == Whom::all && !found.cgroups.empty()) {
    TRY(signal == SIGKILL ? found.cgroups.kill_all() : found.cgroups.signal_all(signal));
  } else if (whom == Whom::all && signal != SIGKILL) {
    std::vector<pid_t> processes = TRY(processes_of(found));
    for (pid_t pid : processes) ignore(sys::send_signal(pid, signal));  // may have ended
  } else {
    if (found.status != Status::created && found.status != Status::running && !is_paused) {
      return make_error(Kind::usage, "container not running: " + quote(id));
    }
    TRY(signal_first(found.state, signal));
  }
  // Other signals may stay pending until resume; SIGKILL may not, and a frozen v1 process does not
  // die of it.
  if (signal != SIGKILL) return {};
  if (is_paused) TRY(found.cgroups.freeze(CgroupSet::Freeze::thaw));
  let_die(found);
  return {};
}

Result<void> remove(const Store& store, const std::string& id, const RemoveOptions& options,
                    Log& log) {
  const Force force = options.force;
  auto entry = store.get(id);
  if (!entry.ok() && entry.error().kind == Kind::not_found && force == Force::yes) return {};
  if (!entry.ok()) return std::move(entry).error();
  // Left by a create that was killed before it wrote the state.
  if (force == Force::yes && !entry->read().ok()) return store.remove(id);
  Found found = TRY(find(store, id));
  bool is_over = found.status == Status::stopped || found.status == Status::created;
  if (!is_over && force == Force::no) {
    return make_error(Kind::usage,
                      "container " + quote(id) + " is " + std::string(status_name(found.status)) +
                          ", not stopped",
                      "berth-runtime kill " + id + " KILL, or delete --force " + id);
  }
  if (found.status != Status::stopped && found.state.pid != 0) {
    TRY(kill_and_wait(found));
    // An update may have been running until now.
    found.cgroups = TRY(cgroups_of(found.state));
  }
  // Read now, because the count disappears with the cgroup.
  const bool oom_killed = oom_kills(found.cgroups).value_or(0) > 0;
  TRY(dispose(store, found.state, std::move(found.cgroups), log));
  if (!oom_killed || options.oom_file.empty()) return {};
  return sys::write_file(sys::cwd(), options.oom_file, "", 0600);
}

Result<Listed> look_up(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  return Listed{std::move(found.state), found.status};
}

Result<std::vector<Listed>> list(const Store& store) {
  std::vector<Listed> listed;
  std::vector<std::string> ids = TRY(store.list());
  for (const auto& id : ids) {
    auto one = look_up(store, id);
    if (one.ok()) listed.push_back(std::move(one).value());
  }
  return listed;
}

Result<void> pause(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status != Status::running && found.status != Status::created) {
    return make_error(Kind::usage, "container not running: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  TRY(give_scope(found));
  return found.cgroups.freeze(CgroupSet::Freeze::freeze);
}

Result<void> resume(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status != Status::paused) {
    return make_error(Kind::usage, "container not paused: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  return found.cgroups.freeze(CgroupSet::Freeze::thaw);
}

}  // namespace berth::runtime
