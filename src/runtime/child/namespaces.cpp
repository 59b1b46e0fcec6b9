// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/namespaces.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>

#include "sys/file/file.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {

namespace {

bool creates(const plan::Spawn& spawn, std::string_view type) {
  return std::ranges::find(spawn.created, type) != spawn.created.end();
}

/// The name of the namespace's file in /proc/PID/ns: "net" for "network".
std::string namespace_file(const std::string& type) {
  return type == "mount" ? "mnt" : type == "network" ? "net" : type;
}

}  // namespace

bool changes_user_namespace(const plan::Spawn& spawn) {
  return joins_user_namespace(spawn) || creates(spawn, "user");
}

uint64_t created_namespaces(const plan::Spawn& spawn) {
  uint64_t flags = 0;
  for (const auto& type : spawn.created) {
    flags |= type == "mount"     ? CLONE_NEWNS
             : type == "pid"     ? CLONE_NEWPID
             : type == "ipc"     ? CLONE_NEWIPC
             : type == "uts"     ? CLONE_NEWUTS
             : type == "network" ? CLONE_NEWNET
             : type == "user"    ? CLONE_NEWUSER
                                 : 0;
  }
  return flags & ~late_namespaces(spawn);
}

uint64_t late_namespaces(const plan::Spawn& spawn) {
  return changes_user_namespace(spawn) && creates(spawn, "ipc") ? CLONE_NEWIPC : 0;
}

bool joins_user_namespace(const plan::Spawn& spawn) {
  return std::ranges::any_of(spawn.joined, [](const auto& space) { return space.type == "user"; });
}

int namespace_flag(std::string_view type) {
  if (type == "user") return CLONE_NEWUSER;
  if (type == "pid") return CLONE_NEWPID;
  if (type == "ipc") return CLONE_NEWIPC;
  if (type == "uts") return CLONE_NEWUTS;
  if (type == "network") return CLONE_NEWNET;
  if (type == "cgroup") return CLONE_NEWCGROUP;
  if (type == "time") return CLONE_NEWTIME;
  return 0;
}

Result<bool> is_own_namespace(const sys::Fd& fd, const oci::Namespace& space) {
  std::string name = namespace_file(space.type);
  struct stat there = TRY(sys::stat_fd(fd, space.path));
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns/" + name, O_PATH));
  struct stat here = TRY(sys::stat_fd(own, name));
  return there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

namespace {

enum class Joins { parent, parent_if_permitted, child };

Joins who_joins(const plan::Spawn& spawn, const oci::Namespace& space) {
  if (space.type == "mount" || space.type == "user") return Joins::child;
  // The child may join only namespaces that belong to the user namespace that it joins; the caller
  // may be permitted to join all. The child forks once more, so that a pid namespace takes effect.
  if (joins_user_namespace(spawn)) return Joins::parent_if_permitted;
  return space.type == "pid" || creates(spawn, "user") ? Joins::parent : Joins::child;
}

}  // namespace

bool is_born_into_others(const plan::Spawn& spawn) {
  return std::ranges::any_of(
      spawn.joined, [&](const auto& space) { return who_joins(spawn, space) != Joins::child; });
}

Result<BornInto> enter_birth_place(const plan::Spawn& spawn) {
  BornInto born;
  for (const auto& space : spawn.joined) {
    Joins who = who_joins(spawn, space);
    if (who == Joins::child) continue;
    sys::Fd target = TRY(sys::open_at(sys::cwd(), space.path, O_RDONLY));
    bool is_own = TRY(is_own_namespace(target, space));
    auto joined = sys::setns(target, namespace_flag(space.type), space.path);
    bool is_left = who == Joins::parent_if_permitted && !joined.ok();
    if (is_left && joined.error().kind == Kind::denied) continue;
    TRY(std::move(joined));
    born.types.insert(space.type);
    if (is_own) born.shared.insert(space.type);
  }
  return born;
}

}  // namespace berth::runtime
