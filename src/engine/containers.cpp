// SPDX-License-Identifier: Apache-2.0
#include "engine/containers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/container_directory.hpp"
#include "engine/events.hpp"
#include "engine/launch.hpp"
#include "engine/name.hpp"
#include "engine/new_container.hpp"
#include "engine/sweep.hpp"
#include "engine/volumes.hpp"
#include "engine/watch.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollTime{20};
/// KILL cannot be refused, but a process may be in the kernel for a while.
constexpr std::chrono::seconds kKillTime{10};

ContainerState state_of(const ContainerFiles& files) {
  const ContainerRecord* record = files.record ? &*files.record : nullptr;
  if (files.exit) {
    if (files.exit->restarting && files.owned) return ContainerState::restarting;
    // Docker's: its first start has failed, so it never ran.
    if (!files.exit->error.empty() && !files.start) return ContainerState::created;
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
  summary.created_at = record.created_ns / kNanosecondsPerSecond;
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
    summary.finished_at = files.exit->finished_ns / kNanosecondsPerSecond;
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
Result<std::optional<ContainerFiles>> unless_gone(Result<ContainerFiles> files) {
  if (files.ok()) return std::optional<ContainerFiles>(std::move(*files));
  if (files.error().kind == Kind::not_found) return std::optional<ContainerFiles>();
  return std::move(files).error();
}

Result<std::optional<ContainerFiles>> find_files(const Context& context, const std::string& id) {
  return unless_gone(read_container(context.paths, id));
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
      return make_error(Kind::usage, "several containers have ids that start with " + quote(name));
    }
    match = std::move(id);
  }
  if (!match) return no_such_container(reference);
  return std::move(*match);
}

std::string cannot_read(const std::string& id) {
  return "cannot read container " + quote(id.substr(0, 12));
}

Result<std::optional<ContainerFiles>> find_recovered(const Context& context,
                                                     const std::string& id) {
  recover(context, id);
  return find_files(context, id);
}

Result<ContainerFiles> get_files(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto files = TRY(find_files(context, id));
  if (files && is_lost(*files)) files = TRY(find_recovered(context, id));
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

Result<void> send_signal(const Context& context, const std::string& id, int number) {
  // Before it: its end is told by somebody else.
  tell_container(context.paths, id, "kill", {{"signal", std::to_string(number)}});
  TRY(call_runtime(context, {"kill", id, std::to_string(number)}));
  return {};
}

}  // namespace

std::optional<int64_t> first_process(const Context& context, const std::string& id) {
  auto text = call_runtime(context, {"state", id});
  if (!text.ok()) return std::nullopt;  // it ended in this moment
  auto state = json::read<RuntimeState>(*text, "state of the container");
  if (!state.ok() || state->pid <= 0) return std::nullopt;
  return state->pid;
}

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
  AllContainers all = TRY(AllContainers::open(context.paths));
  for (const std::string& id : all.ids()) {
    auto files = TRY(unless_gone(all.read(id)));
    if (files && is_lost(*files)) files = TRY(find_recovered(context, id));
    if (files && files->damage) {
      context.log.warn(cannot_read(id) + ": " + to_line(*files->damage) + ", ignoring");
    }
    if (!files || !files->record) continue;
    ContainerSummary summary = summary_of(*files);
    if (which == Which::running && !is_alive(summary.state)) continue;
    if (needs_pid(summary) && pids == Pids::yes) summary.pid = first_process(context, id);
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
  if (needs_pid(summary)) summary.pid = first_process(context, summary.id);
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
                        "cannot remove container " + quote(reference) + ": container is running",
                        "berth stop " + std::string(reference) + ", or --force");
    }
    // The owner sees the end of its container and lets go; with --rm it also removes it.
    TRY(mark_stopped(context.paths, id));
    auto killed = ending ? Result<void>() : send_signal(context, id, SIGKILL);
    if (!killed.ok() && killed.error().kind == Kind::denied) return std::move(killed).error();
    taken = take_when_free(context, id, kKillTime);
    if (!taken.ok() && taken.error().kind == Kind::not_found) return id;
    if (!taken.ok()) return std::move(taken).error();
    if (!*taken) return make_error(Kind::busy, "container " + quote(reference) + " does not end");
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
                    "cannot remove container " + quote(id.substr(0, 12)) + ": it is in use");
}

namespace {

/// The container that is called so, whatever other ids begin like that.
Result<std::optional<std::string>> id_of_name(const Context& context, const std::string& name) {
  auto found = get_container(context, name);
  if (found.ok() && found->name == name) return std::optional(found->id);
  if (found.ok() || found.error().kind == Kind::not_found) return std::optional<std::string>();
  return std::move(found).error();
}

}  // namespace

Result<void> end_replaced(const Context& context, const std::string& name) {
  auto id = TRY(id_of_name(context, name));
  if (id) TRY(end_container(context, *id, {.force = true}));
  return {};
}

Result<void> remove_replaced(const Context& context, const std::string& name) {
  auto id = TRY(id_of_name(context, name));
  if (id) TRY(remove_container(context, *id, AnonymousVolumes::remove));
  return {};
}

Result<void> kill_container(const Context& context, std::string_view reference, int number) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (!is_alive(state_of(files))) {
    return make_error(Kind::usage,
                      "cannot kill container " + quote(reference) + ": container is not running");
  }
  const std::string& id = files.record->id;
  // Whoever ends it does not want it back.
  bool ends = number == SIGKILL || number == SIGTERM || number == files.record->stop_signal;
  if (ends) TRY(mark_stopped(context.paths, id));
  TRY(send_signal(context, id, number));
  return {};
}

Result<void> stop_container(const Context& context, std::string_view reference,
                            std::optional<int64_t> grace) {
  constexpr int64_t kUsual = 10, kYear = 365 * 24 * 3600;
  ContainerFiles files = TRY(get_files(context, reference));
  const std::string& id = files.record->id;
  ContainerState state = state_of(files);
  if (!is_alive(state)) return {};
  int64_t seconds = grace.value_or(files.record->stop_timeout.value_or(kUsual));
  if (seconds < 0 || seconds > kYear) seconds = kYear;
  TRY(mark_stopped(context.paths, id));
  // It may just have ended.
  ignore(send_signal(context, id, files.record->stop_signal));
  // A frozen process hears nothing.
  if (state == ContainerState::paused) TRY(unpause_container(context, reference));
  auto freed = take_when_free(context, id, std::chrono::seconds(seconds));
  if (freed.ok() && !*freed) {
    ignore(send_signal(context, id, SIGKILL));
    freed = take_when_free(context, id, kKillTime);
  }
  if (!freed.ok()) {
    if (freed.error().kind == Kind::not_found) return {};  // started with --rm
    return std::move(freed).error();
  }
  if (!*freed) return make_error(Kind::busy, "container " + quote(reference) + " does not end");
  tell_container(context.paths, id, "stop");
  return {};
}

Result<void> pause_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerState state = state_of(files);
  std::string what = "cannot pause container " + quote(reference);
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
    return make_error(Kind::usage,
                      "cannot unpause container " + quote(reference) + ": container is not paused");
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
    return make_error(Kind::not_found, "container " + quote(reference) +
                                           " lost its owner: its exit status is not known");
  }
  return *files.exit->exit_code;
}

Result<void> adopt_container(const Context& context, std::string_view reference) {
  return adopt(context, TRY(resolve(context, reference)));
}

namespace {

std::optional<int64_t> running_process(const Context& context, const std::string& id) {
  // As it is: recovering what is lost may need this very answer.
  auto files = read_container(context.paths, id);
  if (!files.ok() || !files->record) return std::nullopt;
  if (files->start && !files->exit) {
    return is_alive_now(*files->start) ? std::optional<int64_t>(files->start->pid) : std::nullopt;
  }
  return !files->record->watched && files->owned ? first_process(context, id) : std::nullopt;
}

}  // namespace

std::optional<RunRequest> request_of(const Context& context, std::string_view reference) {
  auto id = resolve(context, reference);
  if (!id.ok()) return std::nullopt;
  std::string path = container_files(context.paths, *id, Lifetime::kept) + "/" + kRequestFile;
  auto text = sys::read_file(sys::cwd(), path, kMaxRequest);
  if (!text.ok()) return std::nullopt;
  auto request = parse_run_request(*text);
  return request.ok() ? std::optional(std::move(*request)) : std::nullopt;
}

std::optional<int64_t> process_of(const Paths& paths, std::string_view reference, Log& log) {
  Context context{paths, Identity::single, Environment(), log};
  auto id = resolve(context, reference);
  if (!id.ok()) return std::nullopt;
  if (auto process = running_process(context, *id)) return process;
  // Of the container that it shares namespaces with.
  auto request = request_of(context, *id);
  std::string joined = request ? joined_container(*request) : "";
  return joined.empty() ? std::nullopt : running_process(context, joined);
}

}  // namespace berth::engine
