// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/net_devices.hpp"

#include <fcntl.h>

#include <string>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/net/link.hpp"

namespace berth::runtime {
namespace {

/// The namespaces between which interfaces are moved.
struct Spaces {
  sys::Fd own;
  sys::Fd containers;
  sys::NetLinks here;
  sys::NetLinks there;
};

Result<Spaces> open_spaces(const plan::Spawn& spawn, pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  for (const auto& space : spawn.joined) {
    if (space.type == "network") path = space.path;  // the process may not have joined it yet
  }
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns/net", O_RDONLY));
  sys::Fd containers = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  struct stat ours = TRY(sys::stat_fd(own, "/proc/self/ns/net"));
  struct stat theirs = TRY(sys::stat_fd(containers, path));
  if (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev) {
    return make_error(Kind::usage,
                      "config.json: linux.netDevices: the container's network "
                      "namespace is the one that the interfaces are in");
  }
  sys::NetLinks here = TRY(sys::NetLinks::open());
  sys::NetLinks there = TRY(sys::NetLinks::open_in(containers, path));
  return Spaces{std::move(own), std::move(containers), std::move(here), std::move(there)};
}

Error cannot_move(Error error, const plan::MovedInterface& one) {
  return std::move(error).with_context("cannot move network interface " + quote(one.from) +
                                       " into the container");
}

// Makes all checks that are possible in advance. Called for all interfaces before the first one is
// moved.
Result<void> look(Spaces& spaces, const plan::MovedInterface& one) {
  if (!TRY(spaces.here.find(one.from))) return make_error(Kind::not_found, "no such interface");
  bool pattern = one.to.find('%') != std::string::npos;
  if (pattern || !TRY(spaces.there.find(one.to))) return {};
  return make_error(Kind::exists, quote(one.to) + " exists there");
}

Result<void> set_up(sys::NetLinks& links, uint32_t index, const std::string& name,
                    const std::vector<sys::LinkAddress>& addresses) {
  TRY(links.rename(index, name));
  for (const auto& address : addresses) TRY(links.add(index, address));
  return links.raise(index);
}

Result<void> give_back(Spaces& spaces, uint32_t index, const plan::MovedInterface& one,
                       const std::vector<sys::LinkAddress>& addresses) {
  TRY(spaces.there.move(index, spaces.own, one.from));
  auto back = TRY(spaces.here.find(one.from));
  return back ? set_up(spaces.here, *back, one.from, addresses) : Result<void>();
}

Result<void> move_one(Spaces& spaces, const plan::MovedInterface& one) {
  auto index = TRY(spaces.here.find(one.from));
  if (!index) return make_error(Kind::not_found, "no such interface");
  auto addresses = TRY(spaces.here.addresses(*index));
  // Moved under an unused name, because the old name may be taken there. Found again by name,
  // because the index may change.
  std::string passing = "b" + sys::random_hex(6);
  TRY(spaces.here.move(*index, spaces.containers, passing));
  auto moved = TRY(spaces.there.find(passing));
  if (!moved) return make_error(Kind::busy, "find it after its move");
  auto settled = set_up(spaces.there, *moved, one.to, addresses);
  // The first error is reported, whatever happens when the interface is moved back.
  if (!settled.ok()) ignore(give_back(spaces, *moved, one, addresses));
  return settled;
}

}  // namespace

Result<void> move_interfaces(const plan::MoveInterfaces& step, const plan::Spawn& spawn,
                             pid_t pid) {
  Spaces spaces = TRY(open_spaces(spawn, pid));
  for (auto* each : {&look, &move_one}) {
    for (const auto& one : step.interfaces) {
      auto done = each(spaces, one);
      if (!done.ok()) return cannot_move(std::move(done).error(), one);
    }
  }
  return {};
}

}  // namespace berth::runtime
