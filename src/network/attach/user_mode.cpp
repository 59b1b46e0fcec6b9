// SPDX-License-Identifier: Apache-2.0
#include "network/attach/user_mode.hpp"

#include <fcntl.h>

#include <array>
#include <chrono>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "json/value.hpp"
#include "network/attach/ports.hpp"
#include "network/ipv4.hpp"
#include "sys/file.hpp"
#include "sys/net_link.hpp"
#include "sys/poll.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"
#include "sys/stream.hpp"

namespace berth::network {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr size_t kMaxOutput = size_t{64} << 10;
// As slirp4netns has them, and pasta is told to.
constexpr Ipv4 kGateway = 2;
constexpr Ipv4 kNameserver = 3;
constexpr Ipv4 kContainer = 100;

Error helper_error(const std::string& program, std::string_view said) {
  // The last line says why; those before are what it has done.
  auto lines = split(trim(said), '\n');
  std::string reason = escape_controls(trim(lines.back()));
  return make_error(
      Kind::io, "start " + quote(program) + ": " + (reason.empty() ? "it gave no reason" : reason));
}

struct Host {
  Subnet subnet;        ///< that is free
  std::string address;  ///< of the interface of its default route; empty: none
};

Result<Host> look_at_host() {
  auto links = TRY(sys::NetLinks::open());
  std::vector<Subnet> taken;
  std::optional<uint32_t> index;
  for (const sys::Route& route : TRY(links.routes())) {
    auto base = from_bytes(route.destination);
    if (base) taken.push_back({*base, route.prefix_length});
    if (route.prefix_length == 0 && !index) index = route.index;
  }
  auto subnet = choose_small_subnet(taken);
  if (!subnet) {
    return make_error(Kind::unsupported, "find a private subnet that no route of this host has",
                      "--network none or host");
  }
  Host host{*subnet, ""};
  if (!index) return host;
  for (const sys::LinkAddress& one : TRY(links.addresses(*index))) {
    auto address = from_bytes(one.local);
    if (address && host.address.empty()) host.address = text_of(*address);
  }
  return host;
}

// ---- pasta --------------------------------------------------------------------------------------

std::vector<std::string> pasta_words(const Lease& lease, const Subnet& subnet, const sys::Fd& space,
                                     const std::string& pid_file) {
  std::vector<std::string> words = {
      "pasta", "--quiet", "--config-net", "--ipv4-only",
      // What listens on loopback of the host is the host's own business, and so is the container's.
      "--no-map-gw", "--tcp-ns", "none", "--udp-ns", "none", "--ns-ifname", "eth0", "--address",
      lease.address, "--netmask", std::to_string(lease.prefix_length), "--gateway", lease.gateway,
      "--dns-forward", text_of(subnet.base + kNameserver), "--netns-only", "--no-netns-quit",
      "--pid", pid_file};
  bool has_udp = false;
  bool has_tcp = false;
  // One by one: of a range it takes what it can get, and is content.
  for (const Published& port : lease.ports) {
    bool is_udp = port.protocol == "udp";
    (is_udp ? has_udp : has_tcp) = true;
    words.insert(words.end(), {is_udp ? "--udp-ports" : "--tcp-ports",
                               port.host_address + "/" + std::to_string(port.host_port) + ":" +
                                   std::to_string(port.container_port)});
  }
  if (!has_tcp) words.insert(words.end(), {"--tcp-ports", "none"});
  if (!has_udp) words.insert(words.end(), {"--udp-ports", "none"});
  // Not by way of the process: pasta drops the rights to look into it before it opens this.
  words.insert(words.end(), {"--netns", sys::fd_path(space)});
  return words;
}

Result<ProcessName> start_pasta(const Leases& leases, const Request& request, const sys::Fd& space,
                                const Lease& lease, const Subnet& subnet) {
  std::string pid_name = lease.id + ".pid";
  sys::SpawnOptions spawn;
  spawn.program = request.program;
  spawn.args = pasta_words(lease, subnet, space, leases.path() + "/" + pid_name);
  spawn.keep = {space.get()};
  auto output = TRY(sys::run_command(spawn, "", kPatience, kMaxOutput));
  auto text = sys::read_file_if_exists(leases.fd(), pid_name, 64);
  ignore(sys::remove_entry(leases.fd(), pid_name));
  if (output.status.shell_code() != 0) return helper_error(request.program, output.err);
  auto pid = parse_u64(trim(TRY(std::move(text)).value_or("")));
  if (!pid) return make_error(Kind::corrupt, "start " + quote(request.program) + ": no pid file");
  return name_process(static_cast<int>(*pid));
}

// ---- slirp4netns --------------------------------------------------------------------------------

struct HostForward {
  std::string proto;
  std::string host_addr;
  uint16_t host_port = 0;
  uint16_t guest_port = 0;
};
template <class V>
void fields(V& v, HostForward& f) {
  v.required("proto", f.proto);
  v.required("host_addr", f.host_addr);
  v.required("host_port", f.host_port);
  v.required("guest_port", f.guest_port);
}
struct SlirpCall {
  std::string execute;
  HostForward arguments;
};
template <class V>
void fields(V& v, SlirpCall& c) {
  v.required("execute", c.execute);
  v.required("arguments", c.arguments);
}

/// One connection per call. Source: slirp4netns(1) "API SOCKET"
Result<void> publish_by_slirp(const std::string& socket_path, const Published& port) {
  SlirpCall call{"add_hostfwd",
                 {port.protocol, port.host_address, port.host_port, port.container_port}};
  std::string what =
      "publish " + port.host_address + ":" + std::to_string(port.host_port) + "/" + port.protocol;
  sys::Fd socket = TRY(sys::connect_unix(socket_path, sys::SocketType::stream));
  TRY(sys::write_all(socket, json::write(call), "the socket of slirp4netns"));
  std::string answer;
  std::array<char, 4096> part{};
  // It answers and closes; until then it may be busy with packets.
  while (answer.find('}') == answer.npos) {
    std::vector<pollfd> entries = {{socket.get(), POLLIN, 0}};
    if (TRY(sys::poll(entries, kPatience)) == 0) {
      return make_error(Kind::interrupted, what + ": slirp4netns does not answer");
    }
    size_t count = TRY(sys::read_some(socket, part, "the socket of slirp4netns"));
    if (count == 0) break;
    answer.append(part.data(), count);
  }
  if (answer.find("\"error\"") == answer.npos && answer.find("\"return\"") != answer.npos)
    return {};
  return make_error(Kind::busy, what + ": slirp4netns refused: " + escape_controls(trim(answer)),
                    "another host port, or none for any that is free");
}

Result<std::string> await_ready(const sys::Fd& ready, const sys::Fd& said, sys::Process& process,
                                const std::string& program) {
  std::string words;
  std::array<char, 4096> part{};
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    std::vector<pollfd> entries = {
        {ready.get(), POLLIN, 0}, {said.get(), POLLIN, 0}, {process.pidfd().get(), POLLIN, 0}};
    if (left.count() <= 0 || TRY(sys::poll(entries, left)) == 0) {
      return make_error(Kind::interrupted, "start " + quote(program) + ": it takes too long");
    }
    if (entries[1].revents & POLLIN) {
      size_t count = TRY(sys::read_some(said, part, "the words of slirp4netns"));
      if (words.size() < kMaxOutput) words.append(part.data(), count);
      continue;
    }
    // "1" when all is there; nothing when it has ended.
    if (entries[0].revents & POLLIN && TRY(sys::read_some(ready, part, "its word")) > 0) {
      return words;
    }
    if (entries[2].revents != 0 || entries[0].revents != 0) return helper_error(program, words);
  }
}

Result<ProcessName> start_slirp(const Leases& leases, const Request& request, const sys::Fd& space,
                                const Lease& lease, const Subnet& subnet) {
  std::string socket_name = lease.id.substr(0, 64) + ".sock";
  TRY(sys::remove_entry(leases.fd(), socket_name));
  sys::Pipe ready = TRY(sys::make_pipe());
  sys::Pipe said = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  sys::SpawnOptions spawn;
  spawn.program = request.program;
  spawn.args = {"slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback",
                "--enable-sandbox", "--enable-seccomp", "--cidr=" + subnet.text(),
                // A socket's address holds 107 bytes: by the working directory.
                "--api-socket=" + socket_name, "--ready-fd=" + std::to_string(ready.write.get()),
                "--netns-type=path", sys::fd_path(space), "eth0"};
  spawn.in = &null;
  spawn.out = spawn.err = &said.write;
  spawn.keep = {space.get(), ready.write.get()};
  spawn.working_directory = leases.path();
  spawn.die_with_parent = false;
  spawn.new_session = true;
  sys::Process process = TRY(sys::spawn(spawn));
  ready.write.reset();
  said.write.reset();
  Rollback undo;
  undo.add([&] { ignore(sys::remove_entry(leases.fd(), socket_name)); });
  TRY(await_ready(ready.read, said.read, process, request.program));
  std::string path = sys::fd_path(leases.fd()) + "/" + socket_name;
  for (const Published& port : lease.ports) TRY(publish_by_slirp(path, port));
  ProcessName name = TRY(name_process(process.pid()));
  process.release();
  return name;  // nobody has more to say to the socket, so it goes too
}

// ---- its end ------------------------------------------------------------------------------------

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
  lease.address = text_of(subnet.base + kContainer);
  lease.prefix_length = subnet.prefix_length;
  lease.gateway = text_of(subnet.base + kGateway);
  lease.nameservers = {text_of(subnet.base + kNameserver)};
  lease.ports = TRY(settle_ports(request.ports, current));
  Rollback undo;
  undo.add([&] { ignore(detach_user_mode(leases, lease)); });
  lease.helper = request.mode == kPasta ? TRY(start_pasta(leases, request, space, lease, subnet))
                                        : TRY(start_slirp(leases, request, space, lease, subnet));
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
