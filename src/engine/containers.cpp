// SPDX-License-Identifier: Apache-2.0
#include "engine/containers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "engine/container_directory.hpp"
#include "engine/events.hpp"
#include "engine/launch.hpp"
#include "engine/name.hpp"
#include "engine/new_container.hpp"
#include "engine/volumes.hpp"
#include "engine/watch.hpp"
#include "json/fields.hpp"
#include "monitor/protocol.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/process.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollTime{20};
constexpr int64_t kNanoseconds = 1'000'000'000;
/// How long a container may be in the making without anybody holding its lock: the instant between
/// two system calls of its owner.
constexpr int64_t kUnfinishedSeconds = 60;
/// KILL cannot be refused, but a process may be in the kernel for a while.
constexpr std::chrono::seconds kKillTime{10};

/// The first process of a container's last start, if that is still alive.
bool is_alive_now(const StartRecord& start) {
  auto boot = sys::boot_id();
  if (!boot.ok() || *boot != start.boot_id) return false;
  auto ticks = sys::process_start_time(static_cast<pid_t>(start.pid));
  return ticks.ok() && *ticks == start.start_ticks;
}

ContainerState state_of(const ContainerFiles& files) {
  const ContainerRecord* record = files.record ? &*files.record : nullptr;
  if (files.exit) {
    if (files.exit->restarting && files.owned) return ContainerState::restarting;
    return files.exit->exit_code ? ContainerState::exited : ContainerState::dead;
  }
  bool started = files.start || (record != nullptr && !record->watched);
  if (!started) return ContainerState::created;
  if (files.owned) return files.paused ? ContainerState::paused : ContainerState::running;
  if (!files.start) return ContainerState::dead;
  // Its monitor was killed, and no command has given it another one yet.
  if (!is_alive_now(*files.start)) return ContainerState::dead;
  return files.paused ? ContainerState::paused : ContainerState::running;
}

/// It was started, and nobody who could see its end has it any more.
bool is_lost(const ContainerFiles& files) {
  return !files.owned && files.start && !files.exit;
}

ContainerSummary summary_of(const ContainerFiles& files) {
  const ContainerRecord& record = *files.record;
  ContainerSummary summary;
  summary.id = record.id;
  summary.name = record.name;
  summary.image = record.image;
  summary.image_id = record.image_id;
  summary.command = record.command;
  summary.state = state_of(files);
  summary.created_ns = record.created_ns;
  summary.created_at = record.created_ns / kNanoseconds;
  summary.remove = record.remove;
  summary.watched = record.watched;
  summary.terminal = record.terminal;
  summary.interactive = record.interactive;
  if (files.start) {
    summary.started_ns = files.start->started_ns;
    summary.restarts = files.start->restarts;
    if (is_alive(summary.state)) summary.pid = files.start->pid;
  } else if (!record.watched) {
    summary.started_ns = record.created_ns;
  }
  if (files.exit) {
    summary.finished_ns = files.exit->finished_ns;
    summary.finished_at = files.exit->finished_ns / kNanoseconds;
    summary.exit_code = files.exit->exit_code;
    summary.oom_killed = files.exit->oom_killed;
    summary.error = files.exit->error;
  }
  return summary;
}

Error no_such_container(std::string_view reference) {
  return make_error(Kind::not_found, "no such container: " + escape_controls(reference),
                    "berth ps --all");
}

// A container that goes away while it is read is no error: it is absent.
Result<std::optional<ContainerFiles>> find_files(const Context& context, const std::string& id) {
  auto files = read_container(context.paths, id);
  if (files.ok()) return std::optional<ContainerFiles>(std::move(*files));
  if (files.error().kind == Kind::not_found) return std::optional<ContainerFiles>();
  return std::move(files).error();
}

Result<std::string> resolve(const Context& context, std::string_view reference) {
  std::string name(reference);
  if (name.starts_with('/')) name.erase(0, 1);
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    return no_such_container(reference);
  }
  auto by_name = TRY(find_name(context.paths.root, name));
  if (by_name) return std::move(*by_name);
  std::optional<std::string> match;
  for (std::string& id : TRY(container_ids(context.paths.root))) {
    if (!id.starts_with(name)) continue;
    if (match) {
      return make_error(Kind::usage, "several containers have ids that start with " + quoted(name));
    }
    match = std::move(id);
  }
  if (!match) return no_such_container(reference);
  return std::move(*match);
}

std::string cannot_read(const std::string& id) {
  return "cannot read container " + quoted(id.substr(0, 12));
}

Result<std::optional<ContainerFiles>> recover(const Context& context, const std::string& id);

Result<ContainerFiles> get_files(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto files = TRY(find_files(context, id));
  if (files && is_lost(*files)) files = TRY(recover(context, id));
  if (files && files->damage) return std::move(*files->damage).with_context(cannot_read(id));
  if (!files || !files->record) return no_such_container(reference);
  return std::move(*files);
}

struct RuntimeState {
  std::string status;
  int64_t pid = 0;
};
template <class V>
void fields(V& v, RuntimeState& s) {
  v.required("status", s.status);
  v.optional("pid", s.pid);
}

std::optional<int64_t> pid_of(const Context& context, const std::string& id) {
  auto text = call_runtime(context, {"state", id});
  if (!text.ok()) return std::nullopt;  // it ended in this moment
  auto state = json::read<RuntimeState>(*text, "state of the container");
  if (!state.ok() || state->pid <= 0) return std::nullopt;
  return state->pid;
}

// Its monitor has written the pid down; berth in front of it has not.
bool needs_pid(const ContainerSummary& summary) {
  return summary.state == ContainerState::running && !summary.watched;
}

/// Waits until the owner has let go; nothing at the deadline.
Result<std::optional<ContainerDirectory>> take_when_free(const Context& context,
                                                         const std::string& id,
                                                         std::chrono::milliseconds patience) {
  auto end = Clock::now() + patience;
  while (true) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || *taken || Clock::now() >= end) return taken;
    std::this_thread::sleep_for(kPollTime);
  }
}

// What a killed owner has left to the kernel and to berth-runtime.
Result<void> end_leftovers(const Context& context, const std::string& id) {
  if (!TRY(sys::stat_entry(sys::cwd(), runtime_root(context) + "/" + id))) return {};
  TRY(call_runtime(context, {"delete", "--force", id}));
  return {};
}

Result<void> adopt_from_outside(const Context& context, const std::string& id) {
  constexpr std::chrono::seconds kDeadline{10};
  sys::SpawnOptions spawn;
  spawn.program = context.paths.libexec + "/berth";
  spawn.args = {"berth", "--root", context.paths.root, "--state", context.paths.state, "adopt", id};
  auto output = TRY(sys::run_command(spawn, "", kDeadline));
  // It has said what there is to say.
  if (!trim(output.err).empty()) context.log.warn(escape_controls(trim(output.err)));
  return {};
}

Result<void> send_signal(const Context& context, const std::string& id, int number) {
  // Before it: its end is told by somebody else.
  tell_container(context.paths, id, "kill", {{"signal", std::to_string(number)}});
  TRY(call_runtime(context, {"kill", id, std::to_string(number)}));
  return {};
}

/// Whoever makes a container writes its record within a moment; longer ago he was killed.
bool may_be_in_the_making(const ContainerDirectory& directory) {
  auto status = sys::stat_fd(directory.fd(), directory.id());
  int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return !status.ok() || now - status->st_mtime < kUnfinishedSeconds;
}

/// Whether a container that runs without a monitor gets one. That has to be in the container's user
/// namespace, so an ordinary user's sweep leaves it to end_orphans().
enum class Adopt { no, yes };

/// As it was asked to be, where that can still be read.
Watch watch_of(const ContainerDirectory& directory, const ContainerRecord& record) {
  auto text = sys::read_file(directory.files_fd(), kRequestFile);
  auto request = text.ok() ? parse_run_request(*text) : Result<RunRequest>(text.error());
  if (request.ok()) return watch_of(directory, *request);
  return {directory, record.terminal, record.interactive, record.remove};
}

/// A container whose lock nobody holds.
Result<void> sweep_one(const Context& context, ContainerDirectory& directory, Adopt adopt) {
  ContainerFiles files = TRY(directory.read());
  const std::string& id = directory.id();
  if (files.damage) return end_leftovers(context, id);
  if (!files.record) {
    if (may_be_in_the_making(directory)) return {};
    TRY(end_leftovers(context, id));
    return directory.remove();
  }
  const ContainerRecord& record = *files.record;
  // The name is what a container is given last, and what it gives up first when it is removed.
  bool whole = TRY(is_name_of(context.paths.root, record.name, id));
  if (whole && files.exit && !record.remove) return {};
  if (whole && record.prepared && !files.start) return {};
  if (files.start && !files.exit && is_alive_now(*files.start)) {
    if (adopt == Adopt::no) return {};
    context.log.warn("container " + quoted(record.name) +
                     " had lost its monitor; it has a new one, but what it writes is lost until "
                     "it is started again, ignoring");
    return watch_orphan(context, watch_of(directory, record), *files.start);
  }
  TRY(end_leftovers(context, id));
  ignore(sys::remove_tree(sys::cwd(), monitor_directory(context.paths, id)));
  bool ran = files.start || !record.watched;
  if (record.remove || !ran || !whole) {
    TRY(directory.remove());
    remove_volumes_of(context, id);
    return {};
  }
  tell_container(context.paths, id, "die");
  return directory.append(ExitRecord{std::nullopt, nanoseconds_now()});
}

// Holder and monitor were both killed: whoever comes next finds out what is true.
Result<std::optional<ContainerFiles>> recover(const Context& context, const std::string& id) {
  if (context.identity == Identity::root || sys::effective_uid() == 0) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (taken.ok() && *taken) {
      Adopt adopt = context.identity == Identity::root ? Adopt::yes : Adopt::no;
      auto swept = sweep_one(context, **taken, adopt);
      if (!swept.ok()) context.log.warn(to_line(swept.error()) + ", ignoring");
    }
  } else {
    // An ordinary user who has entered no user namespace, as for `ps`.
    auto adopted = adopt_from_outside(context, id);
    if (!adopted.ok()) context.log.warn(to_line(adopted.error()) + ", ignoring");
  }
  return find_files(context, id);
}

std::string sweep_mark(const Context& context) {
  return context.paths.state + "/swept";
}

/// What is in the state directory is of the boot in which all containers were looked at.
bool is_swept_boot(const Context& context) {
  auto mark = sys::read_file_if_exists(sys::cwd(), sweep_mark(context), 64);
  auto boot = sys::boot_id();
  return mark.ok() && boot.ok() && *mark == *boot;
}

void note_sweep(const Context& context) {
  auto boot = sys::boot_id();
  if (!boot.ok() || is_swept_boot(context)) return;
  ignore(sys::write_file(sys::cwd(), sweep_mark(context), *boot, 0600));
}

/// The containers that a sweep has to look at. Those that may have lost their owner have something
/// in the state directory, and those that were never finished or are half removed have no name; a
/// thousand others would cost every start 20 ms. Once after each boot all are looked at.
Result<std::vector<std::string>> suspects(const Context& context) {
  std::vector<std::string> ids = TRY(container_ids(context.paths.root));
  if (!is_swept_boot(context)) return ids;
  std::set<std::string> live;
  for (const std::string& place : {context.paths.state + "/monitors", runtime_root(context),
                                   context.paths.state + "/containers"}) {
    auto entries = sys::list_directory(sys::cwd(), place);
    if (entries.ok()) live.insert(entries->begin(), entries->end());
  }
  std::set<std::string> named = TRY(named_containers(context.paths.root));
  std::erase_if(ids, [&](const std::string& id) {
    return !live.contains(id) && named.contains(link_text(id));
  });
  return ids;
}

/// berth-holder has given containers a new monitor: what the old one had in its hands may be
/// missing from the log.
void tell_adoptions(const Context& context) {
  const std::string monitors = context.paths.state + "/monitors";
  auto ids = sys::list_directory(sys::cwd(), monitors);
  if (!ids.ok()) return;  // nothing was ever watched
  for (const std::string& id : *ids) {
    // A container is made before its monitor's directory, and removed after it.
    auto container = sys::stat_entry(sys::cwd(), container_path(context.paths, id));
    if (container.ok() && !*container) ignore(sys::remove_tree(sys::cwd(), monitors + "/" + id));
    std::string mark = monitors + "/" + id + "/" + monitor::kAdoptedFile;
    auto found = sys::stat_entry(sys::cwd(), mark);
    if (!found.ok() || !*found) continue;
    if (!sys::remove_entry(sys::cwd(), mark).ok()) continue;
    auto files = read_container(context.paths, id);
    bool known = files.ok() && files->record;
    context.log.warn("the monitor of container " +
                     quoted(known ? files->record->name : id.substr(0, 12)) +
                     " was killed; it has a new one, which goes on with its log, ignoring");
  }
}

}  // namespace

std::string_view container_state_name(ContainerState state) {
  switch (state) {
    case ContainerState::created:
      return "created";
    case ContainerState::running:
      return "running";
    case ContainerState::paused:
      return "paused";
    case ContainerState::restarting:
      return "restarting";
    case ContainerState::exited:
      return "exited";
    case ContainerState::dead:
      return "dead";
  }
  BERTH_ASSERT(false);
}

bool is_alive(ContainerState state) {
  return state == ContainerState::running || state == ContainerState::paused ||
         state == ContainerState::restarting;
}

Result<std::vector<ContainerSummary>> list_containers(const Context& context, Which which,
                                                      Pids pids) {
  std::vector<ContainerSummary> summaries;
  for (const std::string& id : TRY(container_ids(context.paths.root))) {
    auto files = TRY(find_files(context, id));
    if (files && is_lost(*files)) files = TRY(recover(context, id));
    if (files && files->damage) {
      context.log.warn(cannot_read(id) + ": " + to_line(*files->damage) + ", ignoring");
    }
    if (!files || !files->record) continue;
    ContainerSummary summary = summary_of(*files);
    if (which == Which::running && !is_alive(summary.state)) continue;
    if (needs_pid(summary) && pids == Pids::yes) summary.pid = pid_of(context, id);
    summaries.push_back(std::move(summary));
  }
  tell_adoptions(context);
  std::sort(summaries.begin(), summaries.end(),
            [](const ContainerSummary& a, const ContainerSummary& b) {
              return std::tie(a.created_ns, a.id) > std::tie(b.created_ns, b.id);
            });
  return summaries;
}

Result<ContainerSummary> get_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerSummary summary = summary_of(files);
  if (needs_pid(summary)) summary.pid = pid_of(context, summary.id);
  return summary;
}

Result<std::string> end_container(const Context& context, std::string_view reference,
                                  EndOptions options) {
  std::string id = TRY(resolve(context, reference));
  auto taken = ContainerDirectory::take_over(context.paths, id);
  if (!taken.ok()) {
    if (taken.error().kind == Kind::not_found) return no_such_container(reference);
    return std::move(taken).error();
  }
  if (!*taken) {
    auto files = TRY(find_files(context, id));
    // An owner that has written the exit is about to let go, and who only looks does so at once.
    bool ending =
        files && (files->exit || !files->owned) && state_of(*files) != ContainerState::restarting;
    if (!ending && !options.force) {
      return make_error(Kind::busy,
                        "cannot remove container " + quoted(reference) + ": container is running",
                        "berth stop " + std::string(reference) + ", or --force");
    }
    // The owner sees the end of its container and lets go; with --rm it also removes it.
    TRY(mark_stopped(context.paths, id));
    auto killed = ending ? Result<void>() : send_signal(context, id, SIGKILL);
    if (!killed.ok() && killed.error().kind == Kind::denied) return std::move(killed).error();
    taken = take_when_free(context, id, kKillTime);
    if (!taken.ok() && taken.error().kind == Kind::not_found) return id;
    if (!taken.ok()) return std::move(taken).error();
    if (!*taken) return make_error(Kind::busy, "container " + quoted(reference) + " does not end");
  }
  TRY(end_leftovers(context, id));
  return id;
}

Result<void> remove_container(const Context& context, const std::string& id,
                              AnonymousVolumes volumes) {
  auto taken = take_when_free(context, id, kKillTime);
  if (!taken.ok()) {
    return taken.error().kind == Kind::not_found ? Result<void>() : std::move(taken).error();
  }
  if (*taken) {
    ignore(sys::remove_tree(sys::cwd(), monitor_directory(context.paths, id)));
    TRY((*taken)->remove());
    if (volumes == AnonymousVolumes::remove) remove_volumes_of(context, id);
    return {};
  }
  return make_error(Kind::busy,
                    "cannot remove container " + quoted(id.substr(0, 12)) + ": it is in use");
}

void end_orphans(const Context& context) {
  auto ids = sys::list_directory(sys::cwd(), runtime_root(context));
  if (!ids.ok()) return;  // nothing has ever run
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || !*taken) continue;  // not ours, or it has an owner
    auto files = (*taken)->read();
    bool lives = files.ok() && files->start && !files->exit && is_alive_now(*files->start);
    taken->reset();
    // Its monitor has to be in its user namespace, which this process is about to leave behind.
    auto ended = lives ? adopt_from_outside(context, id) : end_leftovers(context, id);
    if (!ended.ok()) context.log.debug("end orphans: " + to_line(ended.error()));
  }
}

Result<void> kill_container(const Context& context, std::string_view reference, int number) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (!is_alive(state_of(files))) {
    return make_error(Kind::usage,
                      "cannot kill container " + quoted(reference) + ": container is not running");
  }
  const std::string& id = files.record->id;
  // Whoever ends it does not want it back.
  bool ends = number == SIGKILL || number == SIGTERM || number == files.record->stop_signal;
  if (ends) TRY(mark_stopped(context.paths, id));
  TRY(send_signal(context, id, number));
  return {};
}

Result<void> stop_container(const Context& context, std::string_view reference,
                            std::chrono::milliseconds grace) {
  ContainerFiles files = TRY(get_files(context, reference));
  const std::string& id = files.record->id;
  ContainerState state = state_of(files);
  if (!is_alive(state)) return {};
  TRY(mark_stopped(context.paths, id));
  // It may just have ended.
  ignore(send_signal(context, id, files.record->stop_signal));
  // A frozen process hears nothing.
  if (state == ContainerState::paused) TRY(unpause_container(context, reference));
  auto freed = take_when_free(context, id, grace);
  if (freed.ok() && !*freed) {
    ignore(send_signal(context, id, SIGKILL));
    freed = take_when_free(context, id, kKillTime);
  }
  if (!freed.ok()) {
    if (freed.error().kind == Kind::not_found) return {};  // started with --rm
    return std::move(freed).error();
  }
  if (!*freed) return make_error(Kind::busy, "container " + quoted(reference) + " does not end");
  tell_container(context.paths, id, "stop");
  return {};
}

Result<void> pause_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerState state = state_of(files);
  std::string what = "cannot pause container " + quoted(reference);
  if (state == ContainerState::paused) return make_error(Kind::usage, what + ": it is paused");
  if (state != ContainerState::running) {
    return make_error(Kind::usage, what + ": container is not running");
  }
  TRY(call_runtime(context, {"pause", files.record->id}));
  tell_container(context.paths, files.record->id, "pause");
  return append_to_record(context.paths, files.record->id, json::write(PauseRecord{true}));
}

Result<void> unpause_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (state_of(files) != ContainerState::paused) {
    return make_error(
        Kind::usage, "cannot unpause container " + quoted(reference) + ": container is not paused");
  }
  TRY(call_runtime(context, {"resume", files.record->id}));
  tell_container(context.paths, files.record->id, "unpause");
  return append_to_record(context.paths, files.record->id, json::write(PauseRecord{false}));
}

Result<void> rename_container(const Context& context, std::string_view reference,
                              std::string_view name) {
  ContainerFiles files = TRY(get_files(context, reference));
  std::string wish(name.starts_with('/') ? name.substr(1) : name);
  TRY(check_name(wish));
  const std::string& id = files.record->id;
  const std::string& before = files.record->name;
  if (wish == before) {
    return make_error(Kind::usage, "renaming a container with the same name as its current name");
  }
  const std::string& root = context.paths.root;
  TRY(reserve_name(root, wish, id));
  // The old name goes last: whoever is killed in between leaves a container of two names.
  auto written = append_to_record(context.paths, id, json::write(NameRecord{wish}));
  if (!written.ok()) {
    ignore(release_name(root, wish, id));
    return written;
  }
  tell_container(context.paths, id, "rename", {{"oldName", before}, {"name", wish}});
  return release_name(root, before, id);
}

Result<int> wait_container(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto waiter = ExitWaiter::open(context.paths, id);
  if (!waiter.ok() && waiter.error().kind == Kind::not_found) return no_such_container(reference);
  ExitWaiter exit = TRY(std::move(waiter));
  ContainerFiles files = TRY(exit.wait());
  if (files.damage) return std::move(*files.damage).with_context(cannot_read(id));
  if (!files.exit || !files.exit->exit_code) {
    return make_error(Kind::not_found, "container " + quoted(reference) +
                                           " lost its owner: its exit status is not known");
  }
  return *files.exit->exit_code;
}

Result<void> adopt_container(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto taken = TRY(ContainerDirectory::take_over(context.paths, id));
  return taken ? sweep_one(context, *taken, Adopt::yes) : Result<void>();
}

namespace {

std::optional<int64_t> running_process(const Context& context, const std::string& id) {
  // As it is: recovering what is lost may need this very answer.
  auto files = read_container(context.paths, id);
  if (!files.ok() || !files->record) return std::nullopt;
  if (files->start && !files->exit) {
    return is_alive_now(*files->start) ? std::optional<int64_t>(files->start->pid) : std::nullopt;
  }
  return !files->record->watched && files->owned ? pid_of(context, id) : std::nullopt;
}

/// The id of the container that `id` shares namespaces with, or "".
std::string joined_by(const Context& context, const std::string& id) {
  constexpr size_t kMaxRequest = size_t{16} << 20;
  std::string path = container_files(context.paths, id, Lifetime::kept) + "/" + kRequestFile;
  auto text = sys::read_file(sys::cwd(), path, kMaxRequest);
  if (!text.ok()) return "";
  auto request = parse_run_request(*text);
  return request.ok() ? joined_container(*request) : "";
}

}  // namespace

std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log) {
  Context context{paths, Identity::single, Environment(), log};
  auto id = resolve(context, reference);
  if (!id.ok()) return std::nullopt;
  if (auto process = running_process(context, *id)) return process;
  std::string joined = joined_by(context, *id);
  return joined.empty() ? std::nullopt : running_process(context, joined);
}

void sweep(const Context& context) {
  auto ids = suspects(context);
  if (!ids.ok()) return;  // nothing to clean, or nothing that we may read
  Adopt adopt = context.identity == Identity::root ? Adopt::yes : Adopt::no;
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || !*taken) continue;  // it has an owner, or another process was faster
    auto swept = sweep_one(context, **taken, adopt);
    if (!swept.ok()) {
      context.log.warn("cannot clean up container " + id.substr(0, 12) + ": " +
                       to_line(swept.error()) + ", ignoring");
    }
  }
  tell_adoptions(context);
  sweep_volumes(context);
  note_sweep(context);
}

}  // namespace berth::engine
