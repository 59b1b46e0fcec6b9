// SPDX-License-Identifier: Apache-2.0
#include "engine/container/sweep.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/container/watch.hpp"
#include "engine/context/time.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "gpu/mps/join.hpp"
#include "monitor/protocol.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

/// How long a container may be unfinished while its lock is free: normally only between two system
/// calls of its owner.
constexpr int64_t kUnfinishedSeconds = 60;

Result<void> adopt_from_outside(const Context& context, const std::string& id) {
  constexpr std::chrono::seconds kAdoptDeadline{10};
  sys::SpawnOptions spawn;
  spawn.program = context.paths.libexec + "/berth";
  spawn.args = {"berth", "--root", context.paths.root, "--state", context.paths.state, "adopt", id};
  auto output = TRY(sys::run_command(spawn, "", kAdoptDeadline));
  // Only the messages of this command are reported: its exit status says no more.
  if (!trim(output.err).empty()) context.log.warn(escape_controls(trim(output.err)));
  return {};
}

bool is_recent(int64_t modified) {
  int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return now - modified < kUnfinishedSeconds;
}

/// The creator of a container writes the record within a short time. If there is no record later,
/// the creator was killed.
bool may_be_in_the_making(const ContainerDirectory& directory) {
  auto status = sys::stat_fd(directory.fd(), directory.id());
  return !status.ok() || is_recent(status->st_mtime);
}

/// Whether a container that runs without a monitor gets one. The monitor must be in the container's
/// user namespace, so an ordinary user's sweep leaves this to end_orphans().
enum class Adopt { no, yes };

/// From the container's request, if that is still readable.
Watch watch_of(const ContainerDirectory& directory, const record::Container& record) {
  auto text = sys::read_file(directory.files_fd(), kRequestFile);
  auto request = text.ok() ? parse_run_request(*text) : Result<RunRequest>(text.error());
  if (request.ok()) return watch_of(directory, *request);
  return {directory, record.terminal, record.interactive, record.remove};
}

/// Removes what the owner and the monitor of a container left, including processes.
Result<void> end_of_life(const Context& context, const std::string& id) {
  TRY(end_leftovers(context, id));
  ignore(sys::remove_tree(sys::cwd(), monitor_directory(context.paths, id)));
  return {};
}

/// Sweeps one container; its lock was free and is now held by this process.
Result<void> sweep_one(const Context& context, ContainerDirectory& directory, Adopt adopt) {
  ContainerFiles files = TRY(directory.read());
  const std::string& id = directory.id();
  if (files.damage) return end_leftovers(context, id);
  if (!files.record) {
    if (may_be_in_the_making(directory)) return {};
    TRY(end_leftovers(context, id));
    return directory.remove();
  }
  const record::Container& record = *files.record;
  // A container gets its name last, and its removal releases the name first.
  bool whole = TRY(is_name_of(context.paths.root, record.name, id));
  if (whole) directory.mark_complete();
  bool at_rest = files.exit ? !record.remove : record.prepared && !files.start;
  // A start makes the monitor's directory first, and may be killed right then.
  if (whole && at_rest) return end_of_life(context, id);
  if (files.start && !files.exit && is_alive_now(*files.start)) {
    if (adopt == Adopt::no) return {};
    context.log.warn("container " + quote(record.name) +
                     " had lost its monitor and has a new one, but its output is lost until it is "
                     "restarted, ignoring");
    return watch_orphan(context, watch_of(directory, record), *files.start);
  }
  TRY(end_of_life(context, id));
  bool ran = files.start || !record.watched;
  if (record.remove || !ran || !whole) {
    TRY(directory.remove());
    remove_volumes_of(context, id);
    return {};
  }
  emit_container_event(context.paths, id, "die");
  return directory.append(record::Exit{std::nullopt, nanoseconds_now()});
}

std::string sweep_mark(const Context& context) {
  return context.paths.state + "/swept";
}

/// Whether all containers were checked since the last boot.
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

/// The containers that a sweep has to check. Those that may have lost their owner, were never
/// finished or are half removed have an entry in the state directory; checking all others would
/// cost every start a system call for each. All are checked once after each boot.
Result<std::set<std::string>> suspects(const Context& context) {
  std::set<std::string> ids;
  if (!is_swept_boot(context)) {
    std::vector<std::string> all = TRY(container_ids(context.paths.root));
    ids.insert(all.begin(), all.end());
  }
  for (const std::string& place :
       {context.paths.state + "/monitors", runtime_root(context),
        context.paths.state + "/containers", incomplete_directory(context.paths)}) {
    auto entries = sys::list_directory(sys::cwd(), place);
    if (entries.ok()) ids.insert(entries->begin(), entries->end());
  }
  return ids;
}

/// Removes berth-runtime's state of a container that berth has removed already: berth-runtime
/// reports the end of a foreground container before it removes the cgroup, and may be killed in
/// between.
void end_forgotten(const Context& context, const std::string& id) {
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto entry = sys::open_if_exists(sys::cwd(), runtime_root(context) + "/" + id, kDirectory);
  if (!entry.ok() || !*entry) return;
  auto free = sys::try_lock(**entry, sys::LockMode::exclusive, id);
  if (!free.ok() || !*free) return;  // its creator is about to remove it
  entry->reset();
  // Without --force: if the container runs, another process owns it.
  auto ended = call_runtime(context, {"delete", id});
  if (!ended.ok()) context.log.debug("end what is left of " + id + ": " + to_line(ended.error()));
}

/// Removes the mark of a container that was never made or is gone. Keeps a recent mark: a creator
/// makes the mark before the container.
void drop_mark(const Context& context, const std::string& id) {
  std::string mark = incomplete_directory(context.paths) + "/" + id;
  auto status = sys::stat_entry(sys::cwd(), mark);
  if (!status.ok() || !*status || is_recent((*status)->st_mtime)) return;
  ignore(sys::remove_directory(sys::cwd(), mark));
}

}  // namespace

bool is_alive_now(const record::Start& start) {
  auto boot = sys::boot_id();
  if (!boot.ok() || *boot != start.boot_id) return false;
  auto ticks = sys::process_start_time(static_cast<pid_t>(start.pid));
  return ticks.ok() && *ticks == start.start_ticks;
}

Result<void> end_leftovers(const Context& context, const std::string& id) {
  if (!TRY(sys::stat_entry(sys::cwd(), runtime_root(context) + "/" + id))) return {};
  TRY(call_runtime(context, {"delete", "--force", id}));
  return {};
}

void recover(const Context& context, const std::string& id) {
  if (context.identity == Identity::root || sys::effective_uid() == 0) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (taken.ok() && *taken) {
      Adopt adopt = context.identity == Identity::root ? Adopt::yes : Adopt::no;
      auto swept = sweep_one(context, **taken, adopt);
      if (!swept.ok()) context.log.warn(to_line(swept.error()) + ", ignoring");
    }
  } else {
    // An ordinary user runs verbs such as `ps` without entering a user namespace.
    auto adopted = adopt_from_outside(context, id);
    if (!adopted.ok()) context.log.warn(to_line(adopted.error()) + ", ignoring");
  }
}

Result<void> adopt(const Context& context, const std::string& id) {
  auto taken = TRY(ContainerDirectory::take_over(context.paths, id));
  return taken ? sweep_one(context, *taken, Adopt::yes) : Result<void>();
}

void warn_of_adoptions(const Context& context) {
  const std::string monitors = context.paths.state + "/monitors";
  auto ids = sys::list_directory(sys::cwd(), monitors);
  if (!ids.ok()) return;  // no container ever had a monitor
  for (const std::string& id : *ids) {
    // A container's directory exists before and after its monitor's directory.
    auto container = sys::stat_entry(sys::cwd(), container_path(context.paths, id));
    if (container.ok() && !*container) ignore(sys::remove_tree(sys::cwd(), monitors + "/" + id));
    std::string mark = monitors + "/" + id + "/" + monitor::kAdoptedFile;
    auto found = sys::stat_entry(sys::cwd(), mark);
    if (!found.ok() || !*found) continue;
    if (!sys::remove_entry(sys::cwd(), mark).ok()) continue;
    auto files = read_container(context.paths, id);
    bool known = files.ok() && files->record;
    context.log.warn("the monitor of container " +
                     quote(known ? files->record->name : id.substr(0, 12)) +
                     " was killed; a new one continues its log, ignoring");
  }
}

void end_orphans(const Context& context) {
  auto ids = sys::list_directory(sys::cwd(), runtime_root(context));
  if (!ids.ok()) return;  // no container has ever run
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() && taken.error().kind == Kind::not_found) end_forgotten(context, id);
    if (!taken.ok() || !*taken) continue;  // not ours, or it has an owner
    auto files = (*taken)->read();
    bool lives = files.ok() && files->start && !files->exit && is_alive_now(*files->start);
    taken->reset();
    // The monitor must be in the container's user namespace, and this process is about to enter
    // another one.
    auto ended = lives ? adopt_from_outside(context, id) : end_leftovers(context, id);
    if (!ended.ok()) context.log.debug("end orphans: " + to_line(ended.error()));
  }
}

void sweep(const Context& context) {
  auto ids = suspects(context);
  if (!ids.ok()) return;  // nothing to clean, or no permission to read
  Adopt adopt = context.identity == Identity::root ? Adopt::yes : Adopt::no;
  for (const std::string& id : *ids) {
    auto taken = ContainerDirectory::take_over(context.paths, id);
    if (!taken.ok() && taken.error().kind == Kind::not_found) {
      drop_mark(context, id);
      end_forgotten(context, id);
    }
    if (!taken.ok() || !*taken) continue;  // it has an owner, or another process was faster
    auto swept = sweep_one(context, **taken, adopt);
    if (!swept.ok()) {
      context.log.warn("cannot clean up container " + id.substr(0, 12) + ": " +
                       to_line(swept.error()) + ", ignoring");
    }
  }
  warn_of_adoptions(context);
  sweep_volumes(context);
  gpu::mend_shares(context.paths.state, context.paths.libexec + "/berth-mps");
  note_sweep(context);
}

}  // namespace berth::engine
