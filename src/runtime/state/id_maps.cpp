// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/id_maps.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::runtime {
namespace {

std::string map_text(const std::vector<oci::IdMapping>& mappings) {
  std::string text;
  for (const auto& one : mappings) {
    text += std::to_string(one.container_id) + " " + std::to_string(one.host_id) + " " +
            std::to_string(one.size) + "\n";
  }
  return text;
}

Result<void> write_existing(const std::string& path, const std::string& text) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  return sys::write_all(file, text, path);
}

/// Whether the creator of the namespace may write this map without privileges: the map has only the
/// creator's own id.
bool is_id_alone(const std::vector<oci::IdMapping>& map, uint32_t id) {
  return map.size() == 1 && map[0].host_id == id && map[0].size == 1;
}

std::vector<sys::IdRange> ranges_of(const std::vector<oci::IdMapping>& map) {
  std::vector<sys::IdRange> ranges;
  for (const auto& one : map) ranges.push_back({one.container_id, one.host_id, one.size});
  return ranges;
}

}  // namespace

Result<void> write_id_maps(pid_t pid, const std::vector<oci::IdMapping>& uids,
                           const std::vector<oci::IdMapping>& gids) {
  bool alone = is_id_alone(uids, sys::effective_uid()) && is_id_alone(gids, sys::effective_gid());
  if (sys::effective_uid() != 0 && !alone) {
    // newuidmap and newgidmap map the subordinate ids of an ordinary user.
    auto mapped = sys::map_by_helpers(pid, ranges_of(uids), ranges_of(gids));
    if (mapped.ok()) return mapped;
    if (mapped.error().kind != Kind::not_found) {
      return std::move(mapped).error().with_hint("the user's lines in /etc/subuid and /etc/subgid");
    }
  }
  std::string base = "/proc/" + std::to_string(pid);
  auto groups = write_existing(base + "/gid_map", map_text(gids));
  if (!groups.ok() && groups.error().kind == Kind::denied) {
    // Without CAP_SETGID in the parent namespace, a gid map can be written only after disabling
    // setgroups(2). user_namespaces(7)
    TRY(write_existing(base + "/setgroups", "deny"));
    groups = write_existing(base + "/gid_map", map_text(gids));
  }
  TRY(std::move(groups));
  return write_existing(base + "/uid_map", map_text(uids));
}

Result<sys::Fd> make_user_namespace(const std::vector<oci::IdMapping>& uids,
                                    const std::vector<oci::IdMapping>& gids) {
  auto [ours, theirs] = TRY(sys::socket_pair());
  sys::Cloned holder = TRY(sys::clone3(CLONE_NEWUSER, -1));
  if (holder.pid == 0) {
    ours.reset();
    char word = 0;
    ignore(sys::receive_message(theirs, &word, 1));  // returns when the other end closes
    ::_exit(0);
  }
  sys::Process process(holder.pid, std::move(holder.pidfd));
  TRY(write_id_maps(process.pid(), uids, gids));
  std::string path = "/proc/" + std::to_string(process.pid()) + "/ns/user";
  return sys::open_at(sys::cwd(), path, O_RDONLY);
}

}  // namespace berth::runtime
