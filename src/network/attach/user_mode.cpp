// SPDX-License-Identifier: Apache-2.0
#include "network/attach/user_mode.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "network/address.hpp"
#include "network/attach/choose_ports.hpp"
#include "network/attach/helpers.hpp"
#include "network/attach/nameservers.hpp"
#include "network/name_files.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxTable = size_t{1} << 20;

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

/// Ports at IPv6 addresses need a container with an IPv6 address.
Result<void> check_ipv6(const std::vector<Published>& ports, bool has_it) {
  for (const Published& port : ports) {
    if (has_it || !is_ipv6(port.host_address)) continue;
    return make_error(
        Kind::unsupported,
        "publish " + with_port(port.host_address, port.host_port) +
            ": the container has no IPv6: this machine has no default route of it, or "
            "the container has it switched off",
        "an IPv4 address");
  }
  return {};
}

/// Whether `file`, a table of the kernel about the network namespace of `pid`, has a line with
/// `word`.
Result<bool> has_line_with(int pid, const char* file, std::string_view word) {
  std::string path = "/proc/" + std::to_string(pid) + "/net/" + file;
  // A kernel without IPv6 has no such file.
  std::string text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxTable)).value_or("");
  for (std::string_view line : split(text, '\n')) {
    for (std::string_view one : split_blank(line)) {
      if (one == word) return true;
    }
  }
  return false;
}

/// Records the addresses that pasta gave the container; none for an IP version without a route to
/// other machines.
Result<void> note_addresses(const HelperCall& call, Lease& lease) {
  // proc_pid_net(5): `route` has the IPv4 routes with their interface, `if_inet6` the IPv6
  // addresses in hexadecimal digits.
  std::string inside = address_in(*call.prefix, kHelperInside6);
  bool has_four = TRY(has_line_with(lease.holder.pid, "route", call.interface));
  bool has_six = TRY(has_line_with(lease.holder.pid, "if_inet6", to_hex(inside)));
  if (has_six) {
    lease.ipv6_address = text_of_ipv6(inside);
    lease.ipv6_prefix_length = call.prefix->length;
    lease.ipv6_gateway = text_of_ipv6(address_in(*call.prefix, kHelperGateway));
  }
  if (has_six) {
    lease.nameservers =
        TRY(nameservers_of_pasta(has_four ? lease.nameservers.front() : "",
                                 text_of_ipv6(address_in(*call.prefix, kHelperNameserver))));
  }
  if (!has_four) {
    lease.address.clear();
    lease.prefix_length = 0;
    lease.gateway.clear();
  }
  return {};
}

/// Starts pasta with IPv6, or without if that fails, as with pasta from 2025 in a container in
/// which IPv6 is disabled (--sysctl net.ipv6.conf.all.disable_ipv6=1).
Result<ProcessName> start_with_or_without_ipv6(const Leases& leases, HelperCall& call,
                                               const sys::Fd& space) {
  auto started = start_pasta(leases, call, space);
  bool may_go_without = call.prefix && check_ipv6(call.ports, false).ok();
  if (started.ok() || !may_go_without) return started;
  call.prefix.reset();
  return start_pasta(leases, call, space);
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
  lease.ports = TRY(choose_ports(request.ports, current));
  Rollback undo;
  undo.add([&] { ignore(detach_user_mode(leases, lease)); });
  lease.mac = request.mac;
  HelperCall call{request.program, lease.id.substr(0, 64), subnet, lease.ports};
  call.mac = request.mac;
  if (request.mode == kPasta) {
    call.prefix = host.prefix;
    TRY(check_ipv6(lease.ports, host.prefix.has_value()));
    lease.helper = TRY(start_with_or_without_ipv6(leases, call, space));
    if (call.prefix) TRY(note_addresses(call, lease));
    TRY(check_ipv6(lease.ports, !lease.ipv6_address.empty()));
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
  // A container that was restarted meanwhile has a new lease of the same name.
  if (!now || now->holder != lease->holder) return {};
  return detach_user_mode(leases, *now);
}

}  // namespace berth::network
