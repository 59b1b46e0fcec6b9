// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-network, as root or as id 0 of a user namespace, for berth-runtime. Capabilities
// used: CAP_NET_ADMIN here and in the container's network namespace, CAP_SYS_ADMIN to enter it.
// Hostile input: none; at attach no process of the container runs yet, and names of containers
// never become part of rules.
#include "network/attach/serve.hpp"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "network/address.hpp"
#include "network/attach/bridge.hpp"
#include "network/attach/choose_ports.hpp"
#include "network/attach/endpoints.hpp"
#include "network/attach/helpers.hpp"
#include "network/attach/holder.hpp"
#include "network/attach/leases.hpp"
#include "network/attach/peers.hpp"
#include "network/attach/user_mode.hpp"
#include "network/name_files.hpp"
#include "network/publish.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxNames = size_t{64} << 10;
constexpr const char* kUnrestored = "unrestored";  // exists while networks are to be restored

Result<sys::Fd> open_space(int pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  sys::Fd space = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns/net", O_RDONLY));
  if (TRY(sys::stat_fd(space, path)).st_ino == TRY(sys::stat_fd(own, "our own")).st_ino) {
    return make_error(Kind::usage, "give the container a network: it shares ours");
  }
  return space;
}

/// Writes the files in place, because the container may have them mounted.
Result<void> write_names(const Request& request, const Lease& lease) {
  auto rewrite = [](const std::string& file, auto&& change) -> Result<void> {
    if (file.empty()) return {};
    std::string text = TRY(sys::read_file(sys::cwd(), file, kMaxNames));
    return sys::write_file(sys::cwd(), file, change(text), 0644);
  };
  TRY(rewrite(request.hosts_file, [&](const std::string& text) {
    const std::string& own = lease.address.empty() ? lease.ipv6_address : lease.address;
    return with_addresses(text, own, lease.host);
  }));
  return rewrite(request.resolver_file, [&](const std::string& text) {
    return with_nameservers(text, lease.nameservers);
  });
}

Result<std::vector<Lease>> others_than(Leases& leases, const std::string& id) {
  std::vector<Lease> all = TRY(leases.sweep());
  std::erase_if(all, [&](const Lease& one) { return one.id == id; });
  return all;
}

/// Detaches a container from the bridges in the holder's namespace. If the holder has ended,
/// bridges and ports are gone already.
Result<void> detach_inside(Leases& leases, const Lease& lease) {
  auto holder = TRY(find_holder(leases));
  std::vector<Lease> left = TRY(others_than(leases, lease.id));
  if (!holder) {
    send_to_peers(left, networks_of(lease));
    return leases.remove(lease.id);
  }
  auto closed = forward_ports(leases, *holder, left);
  TRY(enter_space(*holder));
  TRY(detach_bridge(leases, lease));
  return closed;
}

/// Publishes host ports for the bridges of an ordinary user.
Result<std::vector<Published>> open_ports(const Leases& leases, const Holder& holder,
                                          const std::vector<Publish>& asked,
                                          const std::vector<Lease>& current) {
  std::vector<Published> ports = TRY(choose_ports(asked, current));
  choose_inner_ports(ports, current);
  TRY(add_ports(leases, holder, ports));
  return ports;
}

/// Does the part of an ordinary user's network that needs the host's namespace, before the bridges
/// are made.
Result<void> prepare_inside(Leases& leases, const Holder& holder, const Request& request,
                            Lease& lease) {
  lease.outside = request.outside;
  std::vector<Lease> current = TRY(leases.sweep());
  // Frees ports of killed containers. Ports that other containers cannot get are not an error here.
  ignore(forward_ports(leases, holder, current));
  lease.host = holder.host;
  auto subnet = parse_subnet(holder.subnet);
  if (subnet) lease.nameservers = {text_of(subnet->base + kHelperNameserver)};
  bool leads_out =
      request.networks.empty() ||
      std::ranges::any_of(request.networks, [](const Attachment& one) { return !one.internal; });
  // Done before the bridges, because it may fail. A connection that arrives too early finds no
  // listener.
  if (leads_out) lease.ports = TRY(open_ports(leases, holder, request.ports, current));
  return enter_space(holder);
}

/// Restores the networks of those of `current` whose holder has ended. If this is interrupted, the
/// next call continues.
Result<void> restore(Leases& leases, const std::vector<Lease>& current) {
  std::vector<Placed> containers;
  for (const Lease& lease : current) {
    if (lease.outside.empty()) continue;
    auto space = open_space(lease.holder.pid);
    if (space.ok()) containers.push_back({lease, std::move(*space)});
  }
  if (!containers.empty()) {
    TRY(sys::replace_file(leases.fd(), kUnrestored, "", 0600));
    TRY(restore_bridges(leases, containers));
  }
  return sys::remove_entry(leases.fd(), kUnrestored);
}

/// Whether running containers still lack the bridges and ports that their old holder had.
Result<bool> must_restore(const Leases& leases, const Provided& provided) {
  return provided.is_new || TRY(sys::stat_entry(leases.fd(), kUnrestored)).has_value();
}

Result<void> attach_inside(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease) {
  const Provided provided = TRY(provide_holder(leases, request));
  Rollback undo;
  undo.add([&] {
    auto left = others_than(leases, lease.id);
    if (left.ok()) ignore(forward_ports(leases, provided.holder, *left));
  });
  TRY(prepare_inside(leases, provided.holder, request, lease));
  if (TRY(must_restore(leases, provided))) {
    std::vector<Lease> current = TRY(leases.sweep());
    TRY(restore(leases, current));
  }
  TRY(attach_bridge(leases, request, space, lease));
  undo.commit();
  return {};
}

Result<void> detach(Leases& leases, const std::string& id) {
  auto lease = TRY(leases.find(id));
  if (!lease) return {};
  if (lease->mode != kBridge) return detach_user_mode(leases, *lease);
  return lease->outside.empty() ? detach_bridge(leases, *lease) : detach_inside(leases, *lease);
}

/// A running container and its network namespace.
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
  // Checked after we have the handle: before that, another process could get the pid.
  if (lives(lease->holder)) return Live{std::move(*lease), std::move(space)};
  return make_error(Kind::not_found, "container " + quote(id.substr(0, 12)) + " has ended");
}

/// Removes leftovers of a killed container with the same id.
Result<void> forget(Leases& leases, const std::string& id) {
  auto lease = TRY(leases.find(id));
  // Without its lease, the old container's interfaces and ports belong to no lease, and the attach
  // of the new container removes them. We cannot remove them now: the holder's namespace is not
  // entered yet, because more facts of the host are needed.
  if (lease && !lease->outside.empty()) return leases.remove(id);
  return detach(leases, id);
}

/// Finds the process that holds the network namespace with the bridges of a running container;
/// nothing if the bridges are in the host's namespace.
Result<std::optional<Holder>> holder_of(const Leases& leases, const Lease& lease) {
  std::optional<Holder> holder;
  if (lease.outside.empty()) return holder;
  holder = TRY(find_holder(leases));
  if (holder) return holder;
  return make_error(Kind::not_found,
                    "container " + quote(lease.id.substr(0, 12)) +
                        " has lost its networks: their holder was killed",
                    "berth restart " + lease.id.substr(0, 12));
}

}  // namespace

Result<HookState> parse_state(std::string_view text) {
  return json::read<HookState>(text, "state of the container");
}

Result<void> provide(const std::string& directory, const Request& request) {
  Leases leases = TRY(Leases::open(directory));
  Provided provided = TRY(provide_holder(leases, request));
  std::vector<Lease> current = TRY(leases.sweep());
  bool is_empty =
      std::ranges::none_of(current, [](const Lease& lease) { return !lease.outside.empty(); });
  if (is_empty || !TRY(must_restore(leases, provided))) return {};
  ignore(forward_ports(leases, provided.holder, current));
  TRY(enter_space(provided.holder));
  return restore(leases, current);
}

Result<void> attach(const std::string& directory, const HookState& state, const Request& request) {
  sys::Fd space = TRY(open_space(state.pid));
  Leases leases = TRY(Leases::open(directory));
  TRY(forget(leases, state.id));
  if (request.mode == kNone) return {};
  TRY(check_versions(request.ports, request.mode));
  Lease lease;
  lease.id = state.id;
  lease.mode = request.mode;
  lease.boot_id = TRY(sys::boot_id());
  lease.holder = TRY(name_process(state.pid));
  lease.hosts_file = request.hosts_file;
  if (request.mode == kBridge) lease.asked_ports = request.ports;
  if (request.mode == kBridge && !request.outside.empty()) {
    TRY(attach_inside(leases, request, space, lease));
  } else if (request.mode == kBridge) {
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
  send_to_peers(all, networks);
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
  Lease& lease = live.lease;
  auto holder = TRY(holder_of(leases, lease));
  std::vector<Lease> current = TRY(leases.sweep());
  Rollback undo;
  // The requested ports, if the container had no way out before.
  std::vector<Published> ports;
  if (!wanted.internal && way_out(endpoints_of(lease)) == nullptr) {
    undo.add([&] {
      if (holder) ignore(forward_ports(leases, *holder, current));
    });
    ports = holder ? TRY(open_ports(leases, *holder, lease.asked_ports, current))
                   : TRY(choose_ports(lease.asked_ports, current));
  }
  if (holder) TRY(enter_space(*holder));
  TRY(connect_bridge(leases, wanted, std::move(ports), live.space, lease));
  undo.commit();
  return {};
}

Result<void> disconnect(const std::string& directory, const std::string& id,
                        const std::string& network) {
  Leases leases = TRY(Leases::open(directory));
  Live live = TRY(find_live(leases, id));
  auto holder = TRY(holder_of(leases, live.lease));
  if (holder) TRY(enter_space(*holder));
  TRY(disconnect_bridge(leases, network, live.space, live.lease));
  // Closes the ports of a container that has no way out any more.
  if (!holder) return {};
  std::vector<Lease> current = TRY(leases.sweep());
  ignore(forward_ports(leases, *holder, current));
  return {};
}

Result<void> detach(const std::string& directory, const std::string& id) {
  // Most containers have no lease, and a user without networks has no directory.
  if (!TRY(sys::stat_entry(sys::cwd(), directory))) return {};
  Leases leases = TRY(Leases::open(directory));
  return detach(leases, id);
}

}  // namespace berth::network
