// SPDX-License-Identifier: Apache-2.0
#include "network/attach/helpers.hpp"

#include <fcntl.h>
#include <sys/mount.h>

#include <array>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"
#include "sys/net/link.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/stream.hpp"

namespace berth::network {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr size_t kMaxOutput = size_t{64} << 10;
constexpr size_t kMaxAnswer = size_t{16} << 20;  // enough for all ports

Error helper_error(const std::string& program, std::string_view said) {
  // The last line has the reason; the lines before it report progress.
  auto lines = split(trim(said), '\n');
  std::string reason = escape_controls(trim(lines.back()));
  return make_error(
      Kind::io, "start " + quote(program) + ": " + (reason.empty() ? "it gave no reason" : reason));
}

// ---- pasta --------------------------------------------------------------------------------------

std::vector<std::string> pasta_words(const HelperCall& call, const std::string& space,
                                     const std::string& pid_file) {
  std::vector<std::string> words = {
      "pasta", "--quiet", "--config-net",
      // Loopback services stay private to the host and to the container.
      "--no-map-gw", "--tcp-ns", "none", "--udp-ns", "none", "--ns-ifname", call.interface,
      "--address", text_of(call.subnet.base + kHelperInside), "--netmask",
      std::to_string(call.subnet.prefix_length), "--gateway",
      text_of(call.subnet.base + kHelperGateway), "--dns-forward",
      text_of(call.subnet.base + kHelperNameserver), "--netns-only", "--no-netns-quit", "--pid",
      pid_file};
  if (call.prefix) {
    words.insert(words.end(),
                 {"--address", text_of_ipv6(address_in(*call.prefix, kHelperInside6)), "--gateway",
                  text_of_ipv6(address_in(*call.prefix, kHelperGateway)), "--dns-forward",
                  text_of_ipv6(address_in(*call.prefix, kHelperNameserver))});
  } else {
    words.emplace_back("--ipv4-only");
  }
  bool has_udp = false;
  bool has_tcp = false;
  // The ports are passed one by one: of a range pasta would take the free ports and report no
  // error.
  for (const Published& port : call.ports) {
    bool is_udp = port.protocol == "udp";
    (is_udp ? has_udp : has_tcp) = true;
    words.insert(words.end(), {is_udp ? "--udp-ports" : "--tcp-ports",
                               port.host_address + "/" + std::to_string(port.host_port) + ":" +
                                   std::to_string(port.container_port)});
  }
  if (!has_tcp) words.insert(words.end(), {"--tcp-ports", "none"});
  if (!has_udp) words.insert(words.end(), {"--udp-ports", "none"});
  if (!call.mac.empty()) words.insert(words.end(), {"--ns-mac-addr", call.mac});
  words.insert(words.end(), {"--netns", space});
  return words;
}

/// A path of a network namespace, while this object exists. A path is needed because pasta closes
/// inherited descriptors (since 2024), and drops the right to open /proc/PID/ns of the container's
/// process before it opens a namespace.
class NamedSpace {
 public:
  static Result<NamedSpace> make(const Leases& leases, const std::string& name,
                                 const sys::Fd& space) {
    NamedSpace made(leases, name);
    ignore(sys::detach(made.path()));  // left by a call that was killed
    TRY(sys::write_file(leases.fd(), name, ""));
    TRY_CTX(sys::mount(sys::fd_path(space), made.path(), "", MS_BIND, ""),
            "cannot name the network namespace");
    return made;
  }
  NamedSpace(NamedSpace&& other) noexcept
      : leases_(other.leases_), name_(std::exchange(other.name_, "")) {}
  NamedSpace& operator=(NamedSpace&&) = delete;
  ~NamedSpace() {
    if (name_.empty()) return;
    ignore(sys::detach(path()));
    ignore(sys::remove_entry(leases_.fd(), name_));
  }
  std::string path() const { return leases_.path() + "/" + name_; }

 private:
  NamedSpace(const Leases& leases, std::string name) : leases_(leases), name_(std::move(name)) {}
  const Leases& leases_;
  std::string name_;
};

// ---- slirp4netns --------------------------------------------------------------------------------

struct HostForward {
  std::string proto;
  std::string host_addr;
  uint16_t host_port = 0;
  uint16_t guest_port = 0;
};
void fields(auto& v, HostForward& f) {
  v.required("proto", f.proto);
  v.required("host_addr", f.host_addr);
  v.required("host_port", f.host_port);
  v.required("guest_port", f.guest_port);
}
struct SlirpCall {
  std::string execute;
  HostForward arguments;
};
void fields(auto& v, SlirpCall& c) {
  v.required("execute", c.execute);
  v.required("arguments", c.arguments);
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
      return make_error(Kind::interrupted, "start " + quote(program) + ": timed out");
    }
    if (entries[1].revents & POLLIN) {
      size_t count = TRY(sys::read_some(said, part, "the words of slirp4netns"));
      if (words.size() < kMaxOutput) words.append(part.data(), count);
      continue;
    }
    // slirp4netns writes "1" when it is ready, and nothing if it ends before.
    if (entries[0].revents & POLLIN && TRY(sys::read_some(ready, part, "its word")) > 0) {
      return words;
    }
    if (entries[2].revents != 0 || entries[0].revents != 0) return helper_error(program, words);
  }
}

/// The first address of an interface; empty: none.
Result<std::string> first_address(sys::NetLinks& links, uint32_t index, sys::IpVersion version) {
  for (const sys::LinkAddress& one : TRY(links.addresses(index))) {
    auto address = from_bytes(one.local);
    if (version == sys::IpVersion::v4 && address) return text_of(*address);
    if (version == sys::IpVersion::v6 && !address) return text_of_ipv6(one.local);
  }
  return std::string();
}

}  // namespace

Result<Host> look_at_host(std::vector<Subnet> taken) {
  auto links = TRY(sys::NetLinks::open());
  std::optional<uint32_t> index;
  for (const sys::Route& route : TRY(links.routes())) {
    auto base = from_bytes(route.destination);
    if (base) taken.push_back({*base, route.prefix_length});
    if (route.prefix_length == 0 && !index) index = route.index;
  }
  auto subnet = choose_small_subnet(taken);
  if (!subnet) {
    return make_error(Kind::unsupported,
                      "find a private subnet that overlaps no route of this host",
                      "--network none or host");
  }
  Host host{*subnet, std::nullopt, ""};
  std::vector<Prefix> taken6;
  std::optional<uint32_t> index6;
  for (const sys::Route& route : TRY(links.routes(sys::IpVersion::v6))) {
    taken6.push_back({route.destination, route.prefix_length});
    if (route.prefix_length == 0 && !route.discards && !index6) index6 = route.index;
  }
  if (index6) host.prefix = choose_prefix(taken6);
  if (index) host.address = TRY(first_address(links, *index, sys::IpVersion::v4));
  if (index6 && host.address.empty()) {
    host.address = TRY(first_address(links, *index6, sys::IpVersion::v6));
  }
  return host;
}

Result<ProcessName> start_pasta(const Leases& leases, const HelperCall& call,
                                const sys::Fd& space) {
  std::string pid_name = call.name + ".pid";
  sys::SpawnOptions spawn;
  spawn.program = call.program;
  auto named = TRY(NamedSpace::make(leases, call.name + ".netns", space));
  spawn.args = pasta_words(call, named.path(), leases.path() + "/" + pid_name);
  auto output = TRY(sys::run_command(spawn, "", kPatience, kMaxOutput));
  auto text = sys::read_file_if_exists(leases.fd(), pid_name, 64);
  ignore(sys::remove_entry(leases.fd(), pid_name));
  if (output.status.shell_code() != 0) return helper_error(call.program, output.err);
  auto pid = parse_u64(trim(TRY(std::move(text)).value_or("")));
  if (!pid) return make_error(Kind::corrupt, "start " + quote(call.program) + ": no pid file");
  return name_process(static_cast<int>(*pid));
}

std::string slirp_socket(const std::string& name) {
  return name + ".sock";
}

Result<std::string> ask_slirp(const std::string& socket_path, const std::string& call) {
  sys::Fd socket = TRY(sys::connect_unix(socket_path, sys::SocketType::stream));
  TRY(sys::write_all(socket, call, "the socket of slirp4netns"));
  std::string answer;
  std::array<char, 4096> part{};
  // slirp4netns answers and then closes the connection; until then it may be busy with packets.
  while (answer.size() < kMaxAnswer) {
    std::vector<pollfd> entries = {{socket.get(), POLLIN, 0}};
    if (TRY(sys::poll(entries, kPatience)) == 0) {
      return make_error(Kind::interrupted, "slirp4netns does not answer");
    }
    size_t count = TRY(sys::read_some(socket, part, "the socket of slirp4netns"));
    if (count == 0) break;
    answer.append(part.data(), count);
  }
  return answer;
}

Result<void> publish_by_slirp(const std::string& socket_path, const Published& port,
                              uint16_t inside) {
  SlirpCall call{"add_hostfwd", {port.protocol, port.host_address, port.host_port, inside}};
  std::string what =
      "publish " + with_port(port.host_address, port.host_port) + "/" + port.protocol;
  std::string answer = TRY_CTX(ask_slirp(socket_path, json::write(call)), what);
  if (answer.find("\"error\"") == answer.npos && answer.find("\"return\"") != answer.npos)
    return {};
  return make_error(Kind::busy, what + ": slirp4netns refused: " + escape_controls(trim(answer)),
                    "another host port, or none for any that is free");
}

Result<sys::Process> start_slirp(const Leases& leases, const HelperCall& call,
                                 const sys::Fd& space) {
  std::string socket_name = slirp_socket(call.name);
  TRY(sys::remove_entry(leases.fd(), socket_name));
  sys::Pipe ready = TRY(sys::make_pipe());
  sys::Pipe said = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  sys::SpawnOptions spawn;
  spawn.program = call.program;
  spawn.args = {"slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback",
                "--enable-sandbox", "--enable-seccomp", "--cidr=" + call.subnet.text(),
                // The path is relative to the working directory, because a socket's address has at
                // most 107 bytes.
                "--api-socket=" + socket_name, "--ready-fd=" + std::to_string(ready.write.get()),
                "--netns-type=path"};
  if (!call.mac.empty()) spawn.args.push_back("--macaddress=" + call.mac);
  spawn.args.insert(spawn.args.end(), {sys::fd_path(space), call.interface});
  spawn.in = &null;
  spawn.out = spawn.err = &said.write;
  spawn.keep = {space.get(), ready.write.get()};
  spawn.working_directory = leases.path();
  spawn.die_with_parent = call.stays;
  spawn.new_session = true;
  sys::Process process = TRY(sys::spawn(spawn));
  ready.write.reset();
  said.write.reset();
  Rollback undo;
  undo.add([&] { ignore(sys::remove_entry(leases.fd(), socket_name)); });
  TRY(await_ready(ready.read, said.read, process, call.program));
  std::string path = sys::fd_path(leases.fd()) + "/" + socket_name;
  for (const Published& port : call.ports) {
    TRY(publish_by_slirp(path, port, port.container_port));
  }
  if (call.stays) undo.commit();
  return process;  // `undo` removes the socket, unless the helper stays
}

}  // namespace berth::network
