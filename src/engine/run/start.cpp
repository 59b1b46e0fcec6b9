// SPDX-License-Identifier: Apache-2.0
#include "engine/run/start.hpp"

#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "engine/container/container_volumes.hpp"
#include "engine/container/containers.hpp"
#include "engine/container/health.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/list.hpp"
#include "engine/container/sweep.hpp"
#include "engine/context/moment.hpp"
#include "engine/draft/bundle.hpp"
#include "engine/draft/have_image.hpp"
#include "engine/draft/reason.hpp"
#include "engine/draft/settle.hpp"
#include "engine/image/store.hpp"
#include "engine/request/cid_file.hpp"
#include "engine/request/detach_keys.hpp"
#include "engine/run/new_container.hpp"
#include "engine/site/rules.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "record/record.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"
#include "sys/umask.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStartPoll{20};
/// How long a container may be between two states: being started, or cleaned up after its end.
constexpr std::chrono::seconds kStartPatience{20};
/// A monitor that was killed is back at once, or never.
constexpr std::chrono::seconds kReturn{3};

/// The next connection after the monitor at the other end of the last one was killed.
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

Result<RunOutcome> stay_to_the_end(const Context& context, const std::string& id, sys::Fd socket,
                                   const AttachOptions& options) {
  // Before it can be gone: --rm removes it, but not what we hold open.
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

/// A container that was taken from nobody to be started.
struct Startable {
  ContainerDirectory directory;
  ContainerFiles files;
};

/// Nothing when it runs already.
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
      // Its owner was killed: it may run all the same.
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

/// What a container that is started again is made of.
struct Origin {
  RunRequest request;
  image::Image image;
};
Result<Origin> origin_of(const Context& context, const Startable& startable) {
  const record::Container& record = *startable.files.record;
  RunRequest request = TRY(read_request(startable.directory));
  image::Image image = TRY(image_of(context, record, request));
  request.name = record.name;
  return Origin{std::move(request), std::move(image)};
}

void add_reason(const image::Image& image, const RunRequest& request, RunOutcome& outcome) {
  if (!outcome.command_error) return;
  outcome.reason = reason_of_command(*outcome.command_error, image, request.volumes);
}

/// Decides and writes again what the container was asked to be. Gives the lease of its GPUs.
Result<gpu::HeldLease> draft_again(const Context& context, const Startable& startable,
                                   const Origin& origin, const WatchedStart& start) {
  Draft draft = TRY(draft_container(context, origin.request, origin.image,
                                    startable.files.record->id, Leasing::take));
  TRY(write_config(draft, startable.directory));
  start.announce();
  TRY(write_files(origin.request, draft, startable.directory));
  save_explanation(context, draft, startable.directory.files_fd());
  return std::move(draft.lease);
}

// As docker does: a container that could not be started says why.
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
  ignore(greet_monitor(*socket, options));  // one that has hung up has said why
  emit_container_event(context.paths, id, "attach");
  return TRY_CTX(stay_to_the_end(context, id, std::move(*socket), options),
                 "cannot attach to container " + quote(record.name));
}

/// What a container's files are made of, from the one that it was to the one that it is to be.
void keep_root(const RunRequest& was, RunRequest& request) {
  request.image = was.image;
  request.image_file = was.image_file;
  request.rootfs = was.rootfs;
  request.rootfs_driver = was.rootfs_driver;
  request.rootfs_reason = was.rootfs_reason;
  for (const Volume& volume : was.volumes) {
    if (volume.anonymous) request.volumes.push_back(volume);
  }
}

record::Start start_record(const Context& context, const std::string& id) {
  record::Start record;
  record.started_ns = nanoseconds_now();
  record.pid = first_process(context, id).value_or(0);
  auto ticks = sys::process_start_time(static_cast<pid_t>(record.pid));
  auto boot = sys::boot_id();
  // It may have ended in this moment.
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

bool is_attached(const RunCall& call, std::string_view stream) {
  return call.attach.empty() ||
         std::find(call.attach.begin(), call.attach.end(), stream) != call.attach.end();
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

Result<RunOutcome> run_attached(const Context& context, const std::string& id, WatchedStart start,
                                sys::Fd socket, const AttachOptions& options,
                                const std::function<void()>& started) {
  emit_container_event(context.paths, id, "attach");
  auto failed = TRY(start.wait());
  if (failed) {
    return RunOutcome{id, failed->status, std::move(failed->command_error), std::nullopt};
  }
  started();
  return stay_to_the_end(context, id, std::move(socket), options);
}

Result<std::string> create_container(const Context& context, const RunRequest& asked,
                                     const RunCall& call, const Progress& progress) {
  TRY(check_request(asked));
  TRY(check_call(asked, call));
  CidFile cid_file = TRY(CidFile::create(call.cid_file));
  // Modes below are meant as they are written: the container's root shows them.
  sys::set_umask(022);
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(find_or_pull_image(context, store, asked, call, progress));
  if (call.replace && asked.name) TRY(remove_replaced(context, *asked.name));
  const RunRequest request = TRY(complete_request(context, asked, image));
  const std::string id = make_container_id();
  NewContainer made = TRY(NewContainer::make(context, request, store, image, id, Owner::nobody));
  Rollback undo;  // after what it refers to
  undo.add([&] { remove_quietly(context, made.directory); });
  TRY(cid_file.write(id));
  save_explanation(context, made.draft, made.directory.files_fd());
  undo.commit();
  return id;
}

Result<RunOutcome> start_container(const Context& context, std::string_view reference,
                                   const StartOptions& options) {
  sys::set_umask(022);
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

  Origin origin = TRY(origin_of(context, *startable));
  Watch watch = watch_of(startable->directory, origin.request);
  watch.health = health_check(origin.request.health, origin.image.config.config);
  sys::Fd client;
  if (attach) client = TRY(attach_early(watch, how));
  WatchedStart start = TRY(WatchedStart::open(context, std::move(watch)));
  gpu::HeldLease lease = TRY(draft_again(context, *startable, origin, start));
  start.go();
  RunOutcome outcome{summary.id, 0, std::nullopt, std::nullopt};
  if (attach) {
    bool runs = false;
    outcome = TRY(run_attached(context, summary.id, std::move(start), std::move(client), how, [&] {
      runs = true;
      lease.leave();
    }));
    if (!runs) keep_failure(*startable, {outcome.status, outcome.command_error, std::nullopt});
    add_reason(origin.image, origin.request, outcome);
    return outcome;
  }
  auto failed = TRY(start.wait());
  if (!failed) lease.leave();
  if (!failed) return outcome;
  keep_failure(*startable, *failed);
  outcome.status = failed->status;
  outcome.command_error = std::move(failed->command_error);
  add_reason(origin.image, origin.request, outcome);
  return outcome;
}

Result<RunOutcome> start_held(const Context& context, std::string_view reference,
                              RunRequest request) {
  sys::set_umask(022);
  ContainerSummary summary = TRY(get_container(context, reference));
  auto startable = TRY(take_to_start(context, summary.id));
  if (!startable) {
    return make_error(Kind::busy, "container " + quote(summary.name) + " runs already");
  }
  Origin origin = TRY(origin_of(context, *startable));
  keep_root(origin.request, request);
  request = TRY(complete_request(context, request, origin.image));
  request.remove = origin.request.remove;
  request.name = summary.name;
  const std::string& id = summary.id;
  Foreground front = TRY(Foreground::open(context, id, bundle_path(context.paths, request, id),
                                          {.label = summary.name, .held = true}));
  const ContainerDirectory& directory = startable->directory;
  TRY(sys::replace_file(directory.files_fd(), kRequestFile, json::write(request), 0600));
  Draft draft = TRY(draft_container(context, request, origin.image, id, Leasing::take));
  TRY(write_config(draft, directory));
  front.announce();
  TRY(provide_volumes(context, request, draft.id, draft.layers));
  TRY(write_files(request, draft, directory));
  save_explanation(context, draft, directory.files_fd());
  Stages stages;
  stages.started = [&] {
    emit_container_event(context.paths, id, "start");
    ignore(directory.append(start_record(context, id)));
    sweep(context);
  };
  stages.exited = [&](int status) {
    emit_container_event(context.paths, id, "die", {{"exitCode", std::to_string(status)}});
    ignore(directory.append(record::Exit{status, nanoseconds_now()}));
  };
  Ended ended = TRY(front.run(stages));
  if (ended.command_error) keep_failure(*startable, ended);
  RunOutcome outcome{id, ended.status, std::move(ended.command_error),
                     std::move(ended.stream_error)};
  add_reason(origin.image, request, outcome);
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
