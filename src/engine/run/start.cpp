// SPDX-License-Identifier: Apache-2.0
#include "engine/run/start.hpp"

#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "base/text.hpp"
#include "engine/container/health_settings.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/life.hpp"
#include "engine/container/list.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/volumes_of_container.hpp"
#include "engine/context/time.hpp"
#include "engine/decide/decide.hpp"
#include "engine/decide/reason.hpp"
#include "engine/request/detach_keys.hpp"
#include "engine/run/bundle.hpp"
#include "engine/run/new_container.hpp"
#include "engine/run/owner.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStartPoll{20};
/// How long a container may take to change its state: to start, or to be cleaned up after its end.
constexpr std::chrono::seconds kStartPatience{20};
/// A killed monitor is replaced at once, or never.
constexpr std::chrono::seconds kReturn{3};

/// A new connection after the monitor of the previous one was killed.
std::optional<sys::Fd> reconnect(const Context& context, const std::string& id,
                                 const AttachOptions& options) {
  auto end = Clock::now() + kReturn;
  while (Clock::now() < end) {
    auto files = read_container(context.paths, id);
    if (!files.ok() || !files->owned || (files->exit && !files->exit->restarting)) break;
    auto socket = connect_to_monitor(context.paths, id);
    if (socket.ok() && greet_monitor(*socket, options).ok()) return std::move(*socket);
    std::this_thread::sleep_for(kStartPoll);
  }
  return std::nullopt;
}

/// A container without an owner, locked in order to start it.
struct Startable {
  ContainerDirectory directory;
  ContainerFiles files;
};

/// Locks the container in order to start it; nothing if it runs already.
Result<std::optional<Startable>> take_to_start(const Context& context, const std::string& id) {
  auto end = Clock::now() + kStartPatience;
  bool swept = false;
  while (true) {
    auto taken = TRY(ContainerDirectory::take_over(context.paths, id));
    if (taken) {
      ContainerFiles files = TRY(taken->read());
      if (files.damage) return std::move(*files.damage);
      if (!files.record) return make_error(Kind::not_found, "no such container: " + id);
      if (!files.start || files.exit) {
        return std::optional<Startable>(Startable{std::move(*taken), std::move(files)});
      }
      // The owner was killed, but the container may still run.
      taken.reset();
      if (!swept) sweep(context);
      swept = true;
    } else {
      ContainerFiles files = TRY(read_container(context.paths, id));
      bool runs = files.start && (!files.exit || files.exit->restarting);
      if (runs || (files.record && !files.record->watched)) return std::optional<Startable>();
    }
    if (Clock::now() > end) break;
    std::this_thread::sleep_for(kStartPoll);
  }
  return make_error(
      Kind::busy, "container " + quote(id.substr(0, 12)) + " is being changed by another process");
}

Result<RunRequest> read_request(const ContainerDirectory& directory) {
  std::string text = TRY(sys::read_file(directory.files_fd(), kRequestFile, kMaxRequest));
  return parse_run_request(text);
}

/// Resolves the saved request of `startable`.
Result<Resolved> resolved_of(const Context& context, const Startable& startable) {
  return resolve_saved(context, *startable.files.record, TRY(read_request(startable.directory)));
}

void add_reason(const Resolved& resolved, RunOutcome& outcome) {
  if (!outcome.command_error) return;
  outcome.reason =
      reason_of_command(*outcome.command_error, resolved.image(), resolved.request().volumes);
}

// As with docker: the record says why a container failed to start.
void keep_failure(const Startable& startable, const Ended& ended) {
  if (startable.files.record->remove) return;
  record::Exit exit{ended.status, nanoseconds_now(), false, false, {}};
  if (ended.command_error) exit.error = to_line(*ended.command_error);
  ignore(startable.directory.append(exit));
}

Result<RunOutcome> attach_to(const Context& context, const std::string& id,
                             const record::Container& record, AttachOptions options) {
  auto socket = connect_to_monitor(context.paths, id);
  if (!socket.ok()) {
    if (record.watched) return std::move(socket).error();
    return make_error(Kind::unsupported,
                      "cannot attach to container " + quote(record.name) +
                          ": it runs in the foreground of another process",
                      "run it without --rm, or with -t or -d");
  }
  ignore(greet_monitor(*socket, options));  // a monitor that hung up has reported the reason
  emit_container_event(context.paths, id, "attach");
  return TRY_CTX(stay_with(context, id, std::move(*socket), options),
                 "cannot attach to container " + quote(record.name));
}

record::Start start_record(const Context& context, const std::string& id) {
  record::Start record;
  record.started_ns = nanoseconds_now();
  record.pid = first_process(context, id).value_or(0);
  auto ticks = sys::process_start_time(static_cast<pid_t>(record.pid));
  auto boot = sys::boot_id();
  // The container may have just ended.
  record.start_ticks = ticks.ok() ? *ticks : 0;
  record.boot_id = boot.ok() ? *boot : "";
  return record;
}

AttachOptions options_of(const record::Container& record) {
  AttachOptions options;
  options.terminal = record.terminal;
  return options;
}

}  // namespace

Result<std::string> detach_keys_of(const std::optional<std::string>& flag) {
  return parse_detach_keys(flag.value_or("ctrl-p,ctrl-q"));
}

AttachOptions attach_options(const RunRequest& request, const RunCall& call,
                             const std::string& keys) {
  AttachOptions options;
  options.terminal = request.terminal;
  options.input = request.interactive && is_attached(call, "stdin");
  options.output = is_attached(call, "stdout");
  options.errors = is_attached(call, "stderr");
  options.ends_input = options.input;
  options.must_see_all = !request.terminal;
  options.signal_proxy = call.signal_proxy;
  options.detach_keys = keys;
  return options;
}

Result<sys::Fd> attach_early(Watch& watch, const AttachOptions& options) {
  auto [ours, theirs] = TRY(sys::socket_pair());
  watch.client = std::move(theirs);
  TRY(greet_monitor(ours, options));
  return std::move(ours);
}

Result<RunOutcome> stay_with(const Context& context, const std::string& id, sys::Fd socket,
                             const AttachOptions& options) {
  // Open the record before the container ends: --rm removes the container, but not open files.
  auto awaited = ExitWaiter::open(context.paths, id);
  Attached attached = TRY(stay_attached(context, std::move(socket), options));
  while (attached.lost) {
    auto again = reconnect(context, id, options);
    if (!again) break;
    context.log.warn("the monitor of container " + id.substr(0, 12) +
                     " was killed: what the container wrote meanwhile is in its log, ignoring");
    attached = TRY(stay_attached(context, std::move(*again), options));
  }
  RunOutcome outcome{id, 0, std::nullopt, std::move(attached.stream_error)};
  if (attached.detached) {
    emit_container_event(context.paths, id, "detach");
    outcome.detached = true;
    return outcome;
  }
  if (!attached.status && awaited.ok()) {
    auto exit = awaited->wait();
    if (exit.ok() && exit->exit) attached.status = exit->exit->exit_code;
  }
  if (!attached.status) {
    return make_error(Kind::not_found, "container " + quote(id.substr(0, 12)) +
                                           " lost its monitor: its exit status is not known");
  }
  outcome.status = *attached.status;
  outcome.reason = reason_of({outcome.status, attached.asked}, attached.printed);
  if (!outcome.reason || !awaited.ok()) return outcome;
  auto files = awaited->look();
  bool stopped = files.ok() && files->exit && (files->exit->stopped || files->exit->oom_killed);
  if (stopped) outcome.reason.reset();
  return outcome;
}

Result<std::string> create_container(const Context& context, Asked asked,
                                     const Progress& progress) {
  CidFile cid_file = TRY(CidFile::create(asked.call.cid_file));
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  const auto& name = resolved.request().name;
  if (resolved.call().replace && name) TRY(remove_replaced(context, *name));
  NewContainer made = TRY(NewContainer::begin(context, resolved, Owner::nobody));
  Decision decision = TRY(decide(context, resolved, made.id(), Leasing::nothing));
  TRY(write_config(decision, made.directory()));
  TRY(made.write(decision));
  TRY(cid_file.write(made.id()));
  save_explanation(context, decision, made.directory().files_fd());
  made.keep();
  return made.id();
}

Result<RunOutcome> start_container(const Context& context, std::string_view reference,
                                   const StartOptions& options) {
  std::string keys = TRY(detach_keys_of(options.detach_keys));
  ContainerSummary summary = TRY(get_container(context, reference));
  auto startable = TRY(take_to_start(context, summary.id));
  bool attach = options.attach || options.interactive;
  if (!startable && !attach) return RunOutcome{summary.id, 0, std::nullopt, std::nullopt};
  ContainerFiles files =
      startable ? startable->files : TRY(read_container(context.paths, summary.id));
  if (!files.record) return make_error(Kind::not_found, "no such container: " + summary.id);
  AttachOptions how = options_of(*files.record);
  how.input = options.interactive && files.record->interactive;
  how.ends_input = how.input;
  how.must_see_all = !files.record->terminal;
  how.signal_proxy = options.signal_proxy;
  how.detach_keys = keys;
  if (!startable) return attach_to(context, summary.id, *files.record, how);

  const Resolved resolved = TRY(resolved_of(context, *startable));
  const RunRequest& request = resolved.request();
  const ContainerDirectory& directory = startable->directory;
  Watch watch = watch_of(directory, request);
  watch.health = health_check(request.health, resolved.image().config.config);
  sys::Fd client;
  if (attach) client = TRY(attach_early(watch, how));
  // Declared first, so that its lease is released after the end of those that hold it too.
  Decision decision;
  WatchedStart start = TRY(WatchedStart::open(context, std::move(watch)));
  decision = TRY(decide(context, resolved, summary.id, Leasing::take));
  TRY(write_config(decision, directory));
  start.announce();
  TRY(write_files(request, decision, directory));
  save_explanation(context, decision, directory.files_fd());
  start.go();
  if (attach) emit_container_event(context.paths, summary.id, "attach");
  auto failed = TRY(start.wait());
  if (failed) {
    keep_failure(*startable, *failed);
    RunOutcome outcome{summary.id, failed->status, std::move(failed->command_error), std::nullopt};
    add_reason(resolved, outcome);
    return outcome;
  }
  decision.lease.leave();
  if (attach) return stay_with(context, summary.id, std::move(client), how);
  return RunOutcome{summary.id, 0, std::nullopt, std::nullopt};
}

Result<RunOutcome> start_held(const Context& context, std::string_view reference, Asked asked) {
  ContainerSummary summary = TRY(get_container(context, reference));
  auto startable = TRY(take_to_start(context, summary.id));
  if (!startable) {
    return make_error(Kind::busy, "container " + quote(summary.name) + " runs already");
  }
  const Resolved was = TRY(resolved_of(context, *startable));
  const Resolved resolved = TRY(resolve_again(context, was, std::move(asked)));
  const RunRequest& request = resolved.request();
  const std::string& id = summary.id;
  Decision decision;  // as in start_container()
  Foreground front = TRY(Foreground::open(context, id, bundle_path(context.paths, request, id),
                                          {.label = summary.name, .held = true}));
  const ContainerDirectory& directory = startable->directory;
  TRY(sys::replace_file(directory.files_fd(), kRequestFile, json::write(request), 0600));
  decision = TRY(decide(context, resolved, id, Leasing::take));
  TRY(write_config(decision, directory));
  front.announce();
  TRY(provide_volumes(context, request, id, decision.layers));
  TRY(write_files(request, decision, directory));
  save_explanation(context, decision, directory.files_fd());
  if (TRY(front.start())) {
    emit_container_event(context.paths, id, "start");
    ignore(directory.append(start_record(context, id)));
    sweep(context);
  }
  if (auto status = TRY(front.exited())) {
    emit_container_event(context.paths, id, "die", {{"exitCode", std::to_string(*status)}});
    ignore(directory.append(record::Exit{*status, nanoseconds_now()}));
  }
  Ended ended = TRY(front.end());
  if (ended.command_error) keep_failure(*startable, ended);
  RunOutcome outcome{id, ended.status, std::move(ended.command_error),
                     std::move(ended.stream_error)};
  add_reason(resolved, outcome);
  return outcome;
}

Result<RunOutcome> attach_container(const Context& context, std::string_view reference,
                                    const AttachRequest& request) {
  std::string keys = TRY(detach_keys_of(request.detach_keys));
  ContainerSummary summary = TRY(get_container(context, reference));
  if (summary.state == ContainerState::paused) {
    return make_error(Kind::usage, "You cannot attach to a paused container, unpause it first",
                      "berth unpause " + summary.name);
  }
  if (summary.state != ContainerState::running) {
    return make_error(Kind::usage, "You cannot attach to a stopped container, start it first",
                      "berth start " + summary.name);
  }
  ContainerFiles files = TRY(read_container(context.paths, summary.id));
  if (!files.record) return make_error(Kind::not_found, "no such container: " + summary.id);
  AttachOptions options = options_of(*files.record);
  options.input = request.input && files.record->interactive;
  options.signal_proxy = request.signal_proxy;
  options.detach_keys = keys;
  return attach_to(context, summary.id, *files.record, options);
}

Result<void> start_again(const Context& context, std::string_view reference) {
  RunOutcome outcome = TRY(start_container(context, reference, {}));
  if (outcome.command_error) return std::move(*outcome.command_error);
  emit_container_event(context.paths, outcome.id, "restart");
  return {};
}

}  // namespace berth::engine
