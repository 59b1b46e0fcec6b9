// SPDX-License-Identifier: Apache-2.0
#include "network/attach/user_mode.hpp"

#include <fcntl.h>

#include "base/rollback.hpp"
#include "network/attach/helpers.hpp"
#include "network/attach/ports.hpp"
#include "network/ipv4.hpp"
#include "sys/file.hpp"
#include "sys/poll.hpp"
#include "sys/process.hpp"

namespace berth::network {
namespace {

Result<void> start_keeper(const Leases& leases, const Lease& lease) {
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  sys::SpawnOptions spawn;
  spawn.program = "/proc/self/exe";
  spawn.args = {"berth-network", "keep", leases.path(), lease.id};
  spawn.in = spawn.out = spawn.err = &null;
  spawn.working_directory = "/";
  spawn.die_with_parent = false;
  spawn.new_session = true;
  TRY(sys::spawn(spawn)).release();
  return {};
}

}  // namespace

Result<void> attach_user_mode(Leases& leases, const Request& request, const sys::Fd& space,
                              Lease& lease) {
  std::vector<Lease> current = TRY(leases.sweep());
  Host host = TRY(look_at_host());
  const Subnet& subnet = host.subnet;
  lease.host = host.address;
  lease.address = text_of(subnet.base + kHelperInside);
  lease.prefix_length = subnet.prefix_length;
  lease.gateway = text_of(subnet.base + kHelperGateway);
  lease.nameservers = {text_of(subnet.base + kHelperNameserver)};
  lease.ports = TRY(settle_ports(request.ports, current));
  Rollback undo;
  undo.add([&] { ignore(detach_user_mode(leases, lease)); });
  lease.mac = request.mac;
  HelperCall call{request.program, lease.id.substr(0, 64), subnet, lease.ports};
  call.mac = request.mac;
  if (request.mode == kPasta) {
    lease.helper = TRY(start_pasta(leases, call, space));
  } else {
    sys::Process process = TRY(start_slirp(leases, call, space));
    lease.helper = TRY(name_process(process.pid()));
    process.release();
  }
  TRY(leases.write(lease));
  TRY(start_keeper(leases, lease));
  undo.commit();
  return {};
}

Result<void> detach_user_mode(Leases& leases, const Lease& lease) {
  end_helper(lease);
  return leases.remove(lease.id);
}

Result<void> keep_until_end(const std::string& directory, const std::string& id) {
  std::optional<Lease> lease;
  {
    Leases leases = TRY(Leases::open(directory));
    lease = TRY(leases.find(id));
  }
  if (!lease) return {};
  auto container = sys::open_pidfd(lease->holder.pid);
  if (container.ok() && lives(lease->holder)) {
    std::vector<pollfd> entries = {{container->get(), POLLIN, 0}};
    TRY(sys::poll(entries, std::nullopt));
  }
  Leases leases = TRY(Leases::open(directory));
  auto now = TRY(leases.find(id));
  // A container that was started again has a lease of the same name.
  if (!now || now->holder != lease->holder) return {};
  return detach_user_mode(leases, *now);
}

}  // namespace berth::network
