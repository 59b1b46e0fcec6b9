// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-network, as root or as id 0 of a user namespace, for berth-runtime. Capabilities
// used: CAP_NET_ADMIN here and in the container's network namespace, CAP_SYS_ADMIN to enter it.
// Hostile: nothing of the container's runs yet at attach; names of containers never get into rules.
#include "network/attach/serve.hpp"

#include <fcntl.h>
#include <sched.h>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "network/attach/bridge.hpp"
#include "network/attach/leases.hpp"
#include "network/attach/peers.hpp"
#include "network/attach/user_mode.hpp"
#include "network/names.hpp"
#include "sys/file.hpp"
#include "sys/process.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxNames = size_t{64} << 10;

Result<sys::Fd> open_space(int pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  sys::Fd space = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns/net", O_RDONLY));
  if (TRY(sys::stat_fd(space, path)).st_ino == TRY(sys::stat_fd(own, "our own")).st_ino) {
    return make_error(Kind::usage, "give the container a network: it shares ours");
  }
  return space;
}

/// In place, because the container may have them mounted.
Result<void> write_names(const Request& request, const Lease& lease) {
  auto rewrite = [](const std::string& file, auto&& change) -> Result<void> {
    if (file.empty()) return {};
    std::string text = TRY(sys::read_file(sys::cwd(), file, kMaxNames));
    return sys::write_file(sys::cwd(), file, change(text), 0644);
  };
  TRY(rewrite(request.hosts_file, [&](const std::string& text) {
    return with_addresses(text, lease.address, lease.host);
  }));
  return rewrite(request.resolver_file, [&](const std::string& text) {
    return with_nameservers(text, lease.nameservers);
  });
}

Result<void> detach(Leases& leases, const std::string& id) {
  auto lease = TRY(leases.find(id));
  if (!lease) return {};
  return lease->mode == kBridge ? detach_bridge(leases, *lease) : detach_user_mode(leases, *lease);
}

/// A container that runs, with its namespace.
struct Live {
  Lease lease;
  sys::Fd space;
};
Result<Live> find_live(const Leases& leases, const std::string& id) {
  auto lease = TRY(leases.find(id));
  if (!lease || lease->mode != kBridge || !lives(lease->holder)) {
    return make_error(Kind::not_found, "container " + quote(id.substr(0, 12)) +
                                           " has no bridge: it does not run, or has another "
                                           "network");
  }
  sys::Fd space = TRY(open_space(lease->holder.pid));
  // Looked at after the handle is ours: it may have been another process's number by then.
  if (lives(lease->holder)) return Live{std::move(*lease), std::move(space)};
  return make_error(Kind::not_found, "container " + quote(id.substr(0, 12)) + " has ended");
}

}  // namespace

Result<HookState> parse_state(std::string_view text) {
  return json::read<HookState>(text, "state of the container");
}

Result<void> attach(const std::string& directory, const HookState& state, const Request& request) {
  sys::Fd space = TRY(open_space(state.pid));
  Leases leases = TRY(Leases::open(directory));
  TRY(detach(leases, state.id));
  if (request.mode == kNone) return {};
  Lease lease;
  lease.id = state.id;
  lease.mode = request.mode;
  lease.boot_id = TRY(sys::boot_id());
  lease.holder = TRY(name_process(state.pid));
  lease.hosts_file = request.hosts_file;
  if (request.mode == kBridge) {
    TRY(attach_bridge(leases, request, space, lease));
  } else if (request.mode == kPasta || request.mode == kSlirp) {
    TRY(attach_user_mode(leases, request, space, lease));
  } else {
    return make_error(Kind::usage, "attach network " + quote(request.mode) + ": unknown mode");
  }
  auto named = write_names(request, lease);
  if (!named.ok()) {
    ignore(detach(leases, state.id));
    return named;
  }
  std::set<std::string> networks = networks_of(lease);
  if (networks.empty()) return {};
  std::vector<Lease> all = TRY(leases.sweep());
  tell_peers(all, networks);
  return {};
}

Result<void> connect(const std::string& directory, const std::string& id,
                     const Attachment& wanted) {
  Leases leases = TRY(Leases::open(directory));
  Live live = TRY(find_live(leases, id));
  for (const Endpoint& one : live.lease.endpoints) {
    if (one.network != wanted.network) continue;
    return make_error(Kind::exists, "container " + quote(id.substr(0, 12)) + " is in network " +
                                        quote(wanted.name) + " already");
  }
  return connect_bridge(leases, wanted, live.space, live.lease);
}

Result<void> disconnect(const std::string& directory, const std::string& id,
                        const std::string& network) {
  Leases leases = TRY(Leases::open(directory));
  Live live = TRY(find_live(leases, id));
  return disconnect_bridge(leases, network, live.space, live.lease);
}

Result<void> detach(const std::string& directory, const std::string& id) {
  // Most have none, and whoever never had one has no directory.
  if (!TRY(sys::stat_entry(sys::cwd(), directory))) return {};
  Leases leases = TRY(Leases::open(directory));
  return detach(leases, id);
}

}  // namespace berth::network
