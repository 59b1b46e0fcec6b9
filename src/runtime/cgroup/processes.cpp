// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: processes inside a container may fork and make cgroups while they are killed.
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/cgroup/files.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/program.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;
using Clock = std::chrono::steady_clock;

constexpr auto kRemovePatience = std::chrono::seconds(2);
constexpr auto kRemoveLongest = std::chrono::seconds(60);
constexpr auto kFreezePatience = std::chrono::seconds(10);

std::chrono::microseconds longer(std::chrono::microseconds wait) {
  return std::min(2 * wait, std::chrono::microseconds(10000));
}

void pause_for(std::chrono::microseconds time) {
  timespec request{0, std::chrono::nanoseconds(time).count()};
  nanosleep(&request, nullptr);
}

/// How long removing may take: one limit per cgroup, and one for all together.
class Patience {
 public:
  void has_progress() { step_ = std::min(Clock::now() + kRemovePatience, end_); }
  bool is_over() const { return Clock::now() > step_; }

 private:
  Clock::time_point end_ = Clock::now() + kRemoveLongest;
  Clock::time_point step_ = Clock::now() + kRemovePatience;
};

/// Removes the children of `directory`; returns the name of a child that could not be removed, if
/// any.
std::optional<std::string> remove_children(const sys::Fd& directory, Patience& patience) {
  std::optional<std::string> stays;
  for (auto& name : child_cgroups(directory)) {
    if (sys::remove_directory(directory, name).ok()) {
      patience.has_progress();
    } else {
      stays = std::move(name);
    }
  }
  return stays;
}

/// Removes all cgroups below `here`. The container made them, so there may be more levels than fit
/// into a path or than a process can have descriptors for. Calls `end` whenever a process is found
/// inside.
void remove_below(sys::Fd here, Patience& patience, const std::function<void()>& end) {
  auto wait = std::chrono::microseconds(50);
  for (size_t depth = 0; !patience.is_over();) {
    auto stays = remove_children(here, patience);
    auto next = sys::open_if_exists(here, stays.value_or(".."), O_RDONLY | O_DIRECTORY);
    if (!next.ok() || (!stays && depth == 0)) return;
    if (!*next) continue;
    here = std::move(**next);
    depth = stays ? depth + 1 : depth - 1;
    if (!stays || !child_cgroups(here).empty()) continue;
    end();
    pause_for(wait);
    wait = longer(wait);
  }
}

/// rmdir(2) of a cgroup, children first. It fails with EBUSY until the last process is reaped.
Result<void> remove_directory(const std::string& path, const std::function<void()>& end) {
  Patience patience;
  for (auto wait = std::chrono::microseconds(50);; wait = longer(wait)) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    int saved = errno;
    if (saved != EBUSY && saved != ENOTEMPTY) return sys_error(saved, "remove " + quote(path));
    end();
    auto directory = sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY);
    if (directory.ok() && *directory) remove_below(std::move(**directory), patience, end);
    if (patience.is_over()) return sys_error(saved, "remove " + quote(path));
    pause_for(wait);
  }
}

/// Removes the common parent if this was its last container.
void remove_common_parent(const std::string& path) {
  std::string parent = path.substr(0, path.rfind('/'));
  if (parent.ends_with("/" + std::string(kCommonCgroup))) ::rmdir(parent.c_str());
}

/// The files of a freezer, which differ between v1 and v2.
struct Freezer {
  const sys::Fd* directory;
  std::string wish;  ///< the file to write `freeze` or `thaw` into
  std::string freeze;
  std::string thaw;
  std::string report;  ///< the file with the present state
  std::string frozen;
  std::string thawed;
};

Freezer freezer_of(const sys::Fd& directory, Version version) {
  if (version == Version::v2) {
    return {&directory, "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1", "frozen 0"};
  }
  return {&directory, "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN", "THAWED"};
}

Result<void> set_and_wait(const Freezer& freezer, const std::string& value,
                          const std::string& expected) {
  auto deadline = Clock::now() + kFreezePatience;
  for (auto wait = std::chrono::microseconds(50);; wait = longer(wait)) {
    // Written again in each round, because v1 misses processes that fork meanwhile.
    TRY(write_cgroup_file(*freezer.directory, freezer.wish, value));
    auto text = TRY(sys::read_file(*freezer.directory, freezer.report));
    if (text.find(expected) != std::string::npos) return {};
    if (Clock::now() > deadline) {
      return make_error(Kind::interrupted, "freeze: not done after 10 s");
    }
    pause_for(wait);
  }
}

}  // namespace

const CgroupSet::Directory* CgroupSet::find_freezer() const {
  const auto* v2 = find_unified();
  return v2 != nullptr ? v2 : find("freezer");
}

Result<void> CgroupSet::give_to(uint32_t uid) const {
  const auto* directory = find_unified();
  if (directory == nullptr) return {};
  auto listed = TRY(sys::read_file_if_exists(sys::cwd(), "/sys/kernel/cgroup/delegate", 4096));
  // COMPAT(4.15): the list for kernels that do not provide it.
  std::string names = listed.value_or("cgroup.procs cgroup.threads cgroup.subtree_control");
  TRY(sys::change_owner(directory->fd, uid, sys::kSameGroup, directory->path));
  for (std::string_view name : split_blank(names)) {
    std::string file(name);
    auto held = sys::hold_entry(directory->fd, file);
    // Some files belong to controllers that are not enabled.
    if (!held.ok() && held.error().kind == Kind::not_found) continue;
    sys::Fd entry = TRY(std::move(held));
    TRY(sys::change_owner(entry, uid, sys::kSameGroup, file));
  }
  return {};
}

Result<std::vector<pid_t>> CgroupSet::processes() const {
  // All hierarchies hold the same processes. The exception is an empty directory that a killed
  // update left.
  std::vector<pid_t> all;
  std::set<pid_t> seen;
  for (const auto& directory : directories_) {
    std::vector<pid_t> pids;
    TRY(append_processes(directory.fd, pids));
    // Zero stands for any process of other pid namespaces, so it may occur several times.
    std::erase_if(pids, [&](pid_t pid) { return !seen.insert(pid).second; });
    all.insert(all.end(), pids.begin(), pids.end());
  }
  return all;
}

Result<void> CgroupSet::freeze(Freeze state) const {
  const auto* directory = find_freezer();
  if (directory == nullptr) {
    return make_error(Kind::unsupported, "freeze the container: it has no cgroup with a freezer");
  }
  Freezer freezer = freezer_of(directory->fd, directory->version);
  if (state == Freeze::thaw) {
    TRY_CTX(set_and_wait(freezer, freezer.thaw, freezer.thawed),
            "cannot thaw " + quote(directory->path));
    return {};
  }
  auto frozen = set_and_wait(freezer, freezer.freeze, freezer.frozen);
  if (frozen.ok()) return {};
  // Thaw again: frozen processes of cgroup v1 cannot even be killed.
  ignore(write_cgroup_file(directory->fd, freezer.wish, freezer.thaw));
  return std::move(frozen).error().with_context("cannot stop " + quote(directory->path));
}

Result<bool> CgroupSet::is_frozen() const {
  const auto* directory = find_freezer();
  if (directory == nullptr) return false;
  Freezer freezer = freezer_of(directory->fd, directory->version);
  auto text = sys::read_file_if_exists(directory->fd, freezer.wish);
  // ENODEV: the last process has ended, and the directory is gone.
  if (!text.ok() && text.error().sys_errno == ENODEV) return false;
  const std::string said = TRY(std::move(text)).value_or("");
  std::string_view wish = trim(said);
  return wish == freezer.freeze || wish == "FREEZING";
}

Result<void> CgroupSet::signal_all(int signal) const {
  // The freeze keeps processes from forking while we signal them; a container that was frozen
  // before stays frozen.
  bool thaw = !TRY(is_frozen()) && find_freezer() != nullptr && freeze(Freeze::freeze).ok();
  auto pids = processes();
  if (pids.ok()) {
    for (pid_t pid : *pids) {
      // Zero stands for a process of another pid namespace; kill(2) would take it for our own
      // process group.
      if (pid > 0) ignore(sys::send_signal(pid, signal));  // it may have ended
    }
  }
  if (thaw) TRY(freeze(Freeze::thaw));
  TRY(std::move(pids));
  return {};
}

void CgroupSet::thaw_below() const {
  const auto* freezer = find_freezer();
  if (freezer == nullptr || freezer->version == Version::v2) return;
  ignore(visit_cgroups(freezer->fd, [](const sys::Fd& one) {
    ignore(write_cgroup_file(one, "freezer.state", "THAWED"));  // it may be gone
    return Result<void>();
  }));
}

void CgroupSet::leave_frozen(const std::vector<pid_t>& pids) {
  constexpr size_t kLongest = 65536;
  auto mounts = sys::read_file(sys::cwd(), "/proc/self/mountinfo");
  auto layout = detect_cgroup_layout();
  if (!mounts.ok() || !layout.ok()) return;
  const CgroupHierarchy* ours = layout->find("freezer");
  if (ours == nullptr || ours->version == Version::v2) return;
  for (pid_t pid : pids) {
    // The process may end at any moment.
    auto text = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/cgroup", kLongest);
    if (!text.ok()) continue;
    CgroupLayout there = parse_cgroup_layout(*mounts, *text);
    const CgroupHierarchy* freezer = there.find("freezer");
    if (freezer == nullptr) continue;
    auto state = sys::read_file(sys::cwd(), freezer->mount + freezer->own + "/freezer.state", 64);
    if (!state.ok() || trim(*state) == "THAWED") continue;
    auto beside = sys::open_at(sys::cwd(), ours->mount + ours->own, O_PATH | O_DIRECTORY);
    if (beside.ok()) ignore(write_cgroup_file(*beside, "cgroup.procs", std::to_string(pid)));
  }
}

void CgroupSet::kill_in_v1() const {
  std::vector<pid_t> pids;
  for (const Directory& directory : directories_) {
    if (directory.version == Version::v2) continue;
    ignore(visit_cgroups(directory.fd, [&](const sys::Fd& one) {
      ignore(append_processes(one, pids));  // it may be gone
      return Result<void>();
    }));
  }
  for (pid_t pid : pids) {
    if (pid > 0) ignore(sys::send_signal(pid, SIGKILL));
  }
}

Result<void> CgroupSet::kill_all() const {
  if (directories_.empty()) return {};
  if (const auto* v2 = find_unified()) {
    auto killed = write_cgroup_file(v2->fd, "cgroup.kill", "1");
    if (killed.ok()) kill_in_v1();
    if (killed.ok() || killed.error().kind != Kind::not_found) return killed;
  }
  // COMPAT(5.14): without cgroup.kill.
  TRY(signal_all(SIGKILL));
  thaw_below();
  if (find_freezer() == nullptr) return {};
  auto thawed = freeze(Freeze::thaw);
  // These errors mean: the last process has ended, and systemd has removed the directory.
  bool gone = !thawed.ok() &&
              (thawed.error().kind == Kind::not_found || thawed.error().sys_errno == ENODEV);
  return gone ? Result<void>() : thawed;
}

Result<void> CgroupSet::remove() {
  std::optional<Error> first;
  // All processes of a container end with its pid namespace. In a container without its own, others
  // may have outlived the first process.
  bool killed = false;
  auto end = [&] {
    if (!std::exchange(killed, true)) ignore(kill_all());  // rmdir reports processes that survive
  };
  for (const auto& directory : directories_) {
    auto removed = remove_directory(directory.path, end);
    if (removed.ok()) {
      remove_common_parent(directory.path);
    } else if (!first) {
      first = std::move(removed).error();
    }
  }
  directories_.clear();
  if (first) return std::move(*first);
  return {};
}

}  // namespace berth::runtime
