// SPDX-License-Identifier: Apache-2.0
#include "engine/containers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "base/text.hpp"
#include "engine/container_directory.hpp"
#include "engine/launch.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollTime{20};
/// How long a container may be in the making without anybody holding its lock: the instant between
/// two system calls of its owner.
constexpr int64_t kUnfinishedSeconds = 60;
/// KILL cannot be refused, but a process may be in the kernel for a while.
constexpr std::chrono::seconds kKillTime{10};

ContainerState state_of(const ContainerFiles& files) {
  if (files.exit) return files.exit->exit_code ? ContainerState::exited : ContainerState::dead;
  if (!files.owned) return ContainerState::dead;
  return files.record ? ContainerState::running : ContainerState::created;
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
  summary.created_at = record.created_at;
  summary.remove = record.remove;
  if (files.exit) {
    summary.finished_at = files.exit->finished_at;
    summary.exit_code = files.exit->exit_code;
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

Result<ContainerFiles> get_files(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto files = TRY(find_files(context, id));
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

}  // namespace

std::string_view container_state_name(ContainerState state) {
  switch (state) {
    case ContainerState::created:
      return "created";
    case ContainerState::running:
      return "running";
    case ContainerState::exited:
      return "exited";
    case ContainerState::dead:
      return "dead";
  }
  BERTH_ASSERT(false);
}

Result<std::vector<ContainerSummary>> list_containers(const Context& context, Which which,
                                                      Pids pids) {
  std::vector<ContainerSummary> summaries;
  for (const std::string& id : TRY(container_ids(context.paths.root))) {
    auto files = TRY(find_files(context, id));
    if (files && files->damage) {
      context.log.warn(cannot_read(id) + ": " + to_line(*files->damage) + ", ignoring");
    }
    if (!files || !files->record) continue;
    ContainerSummary summary = summary_of(*files);
    bool running = summary.state == ContainerState::running;
    if (which == Which::running && !running) continue;
    if (running && pids == Pids::yes) summary.pid = pid_of(context, id);
    summaries.push_back(std::move(summary));
  }
  std::sort(summaries.begin(), summaries.end(),
            [](const ContainerSummary& a, const ContainerSummary& b) {
              return std::tie(a.created_at, a.id) > std::tie(b.created_at, b.id);
            });
  return summaries;
}

Result<ContainerSummary> get_container(const Context& context, std::string_view reference) {
  ContainerFiles files = TRY(get_files(context, reference));
  ContainerSummary summary = summary_of(files);
  if (summary.state == ContainerState::running) summary.pid = pid_of(context, summary.id);
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
    bool ending = files && (files->exit || !files->owned);
    if (!ending && !options.force) {
      return make_error(Kind::busy,
                        "cannot remove container " + quoted(reference) + ": container is running",
                        "berth stop " + std::string(reference) + ", or --force");
    }
    // The owner sees the end of its container and lets go; with --rm it also removes it.
    auto killed = ending ? Result<std::string>("") : call_runtime(context, {"kill", id, "KILL"});
    if (!killed.ok() && killed.error().kind == Kind::denied) return std::move(killed).error();
    taken = take_when_free(context, id, kKillTime);
    if (!taken.ok() && taken.error().kind == Kind::not_found) return id;
    if (!taken.ok()) return std::move(taken).error();
    if (!*taken) return make_error(Kind::busy, "container " + quoted(reference) + " does not end");
  }
  TRY(end_leftovers(context, id));
  return id;
}

Result<void> remove_container(const Context& context, const std::string& id) {
  auto taken = take_when_free(context, id, kKillTime);
  if (!taken.ok()) {
    return taken.error().kind == Kind::not_found ? Result<void>() : std::move(taken).error();
  }
  if (*taken) return (*taken)->remove();
  return make_error(Kind::busy,
                    "cannot remove container " + quoted(id.substr(0, 12)) + ": it is in use");
}

void end_orphans(const Context& context) {
  auto ids = sys::list_directory(sys::cwd(), runtime_root(context));
  if (!ids.ok()) return;  // nothing has ever run
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || !*taken) continue;  // not ours, or it has an owner
    auto ended = end_leftovers(context, id);
    if (!ended.ok()) context.log.debug("end orphans: " + to_line(ended.error()));
  }
}

Result<void> kill_container(const Context& context, std::string_view reference, int number) {
  ContainerFiles files = TRY(get_files(context, reference));
  if (state_of(files) != ContainerState::running) {
    return make_error(Kind::usage,
                      "cannot kill container " + quoted(reference) + ": container is not running");
  }
  TRY(call_runtime(context, {"kill", files.record->id, std::to_string(number)}));
  return {};
}

Result<void> stop_container(const Context& context, std::string_view reference,
                            std::chrono::milliseconds grace) {
  ContainerFiles files = TRY(get_files(context, reference));
  const std::string& id = files.record->id;
  if (state_of(files) != ContainerState::running) return {};
  // It may just have ended.
  ignore(call_runtime(context, {"kill", id, std::to_string(files.record->stop_signal)}));
  auto freed = take_when_free(context, id, grace);
  if (freed.ok() && !*freed) {
    ignore(call_runtime(context, {"kill", id, std::to_string(SIGKILL)}));
    freed = take_when_free(context, id, kKillTime);
  }
  if (!freed.ok()) {
    if (freed.error().kind == Kind::not_found) return {};  // started with --rm
    return std::move(freed).error();
  }
  if (!*freed) return make_error(Kind::busy, "container " + quoted(reference) + " does not end");
  return {};
}

Result<int> wait_container(const Context& context, std::string_view reference) {
  std::string id = TRY(resolve(context, reference));
  auto awaited = await_container(context.paths, id);
  if (!awaited.ok() && awaited.error().kind == Kind::not_found) {
    return no_such_container(reference);
  }
  ContainerFiles files = TRY(std::move(awaited));
  if (files.damage) return std::move(*files.damage).with_context(cannot_read(id));
  if (!files.exit || !files.exit->exit_code) {
    return make_error(Kind::not_found, "container " + quoted(reference) +
                                           " lost its owner: its exit status is not known");
  }
  return *files.exit->exit_code;
}

void sweep(const Context& context) {
  auto ids = container_ids(context.paths.root);
  if (!ids.ok()) return;  // nothing to clean, or nothing that we may read
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() || !*taken) continue;  // it has an owner, or another process was faster
    ContainerDirectory& directory = **taken;
    auto files = directory.read();
    if (!files.ok()) continue;
    bool keep = files->damage || (files->record && !files->record->remove);
    if (files->exit && keep) continue;
    if (!files->record && !keep) {
      // Its owner removed it in this moment, or is about to write the record.
      auto status = sys::stat_fd(directory.fd(), id);
      int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
      if (!status.ok() || now - status->st_mtime < kUnfinishedSeconds) continue;
    }
    auto ended = end_leftovers(context, id);
    if (ended.ok() && files->damage) continue;
    if (!ended.ok()) {
      context.log.warn("cannot clean up container " + id.substr(0, 12) + ": " +
                       to_line(ended.error()) + ", ignoring");
      continue;
    }
    int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    auto done = keep ? directory.write(ExitRecord{std::nullopt, now}) : directory.remove();
    if (!done.ok()) context.log.debug("sweep: " + to_line(done.error()));
  }
}

}  // namespace berth::engine
