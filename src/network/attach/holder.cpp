// SPDX-License-Identifier: Apache-2.0
// Runs as: root of the user's namespace. Capabilities used: CAP_SYS_ADMIN and CAP_NET_ADMIN there.
// Hostile input: none; records and sockets are in a directory that belongs to the user.
#include "network/attach/holder.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "network/attach/helpers.hpp"
#include "network/rules.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"
#include "sys/user/namespace.hpp"

namespace berth::network {
namespace {

/// One entry of the answer to list_hostfwd. slirp4netns(1) "API SOCKET"
struct Forward {
  int64_t id = 0;
  std::string proto;
  std::string host_addr;
  uint16_t host_port = 0;
  uint16_t guest_port = 0;
};
void fields(auto& v, Forward& f) {
  v.required("id", f.id);
  v.required("proto", f.proto);
  v.required("host_addr", f.host_addr);
  v.required("host_port", f.host_port);
  v.required("guest_port", f.guest_port);
}
struct ForwardList {
  std::vector<Forward> entries;
};
void fields(auto& v, ForwardList& l) {
  v.optional("entries", l.entries);
}
/// slirp4netns 1.2 answers with the bare list; according to the manual the list is in "return".
struct ListAnswer {
  ForwardList wrapped;
  std::vector<Forward> entries;
};
void fields(auto& v, ListAnswer& a) {
  v.optional("return", a.wrapped);
  v.optional("entries", a.entries);
}

struct ForwardId {
  int64_t id = 0;
};
void fields(auto& v, ForwardId& i) {
  v.required("id", i.id);
}
struct RemoveCall {
  std::string execute = "remove_hostfwd";
  ForwardId arguments;
};
void fields(auto& v, RemoveCall& c) {
  v.required("execute", c.execute);
  v.required("arguments", c.arguments);
}

bool is_same(const Forward& there, const Published& wanted) {
  return there.proto == wanted.protocol && there.host_addr == wanted.host_address &&
         there.host_port == wanted.host_port && there.guest_port == wanted.inner_port;
}

/// Makes slirp4netns, which listens at `socket_path`, forward the host's ports of `wanted` to their
/// inner ports, where possible, and no others. Errors: the first of busy (a port), io (slirp4netns
/// does not answer).
Result<void> forward_by_slirp(const std::string& socket_path,
                              const std::vector<Published>& wanted) {
  std::string answer = TRY(ask_slirp(socket_path, R"({"execute": "list_hostfwd"})"));
  ListAnswer list = TRY(json::read<ListAnswer>(answer, "the answer of slirp4netns"));
  std::vector<Forward> there = std::move(list.entries);
  there.insert(there.end(), list.wrapped.entries.begin(), list.wrapped.entries.end());
  for (const Forward& one : there) {
    bool stays =
        std::ranges::any_of(wanted, [&](const Published& port) { return is_same(one, port); });
    if (!stays) TRY(ask_slirp(socket_path, json::write(RemoveCall{.arguments = {one.id}})));
  }
  Result<void> all;
  for (const Published& port : wanted) {
    bool is_there =
        std::ranges::any_of(there, [&](const Forward& one) { return is_same(one, port); });
    if (is_there) continue;
    auto done = publish_by_slirp(socket_path, port, port.inner_port);
    if (!done.ok() && all.ok()) all = std::move(done);
  }
  return all;
}

constexpr const char* kHolderName = "holder";  // HelperCall::name of the holder's helper
constexpr const char* kReady = "ready\n";
constexpr size_t kMaxRecord = 65536;
constexpr std::chrono::seconds kStartPatience{30};
constexpr std::chrono::seconds kHelperPause{1};
constexpr int kMostFailures = 60;  // in a row

std::string space_path(const Holder& holder) {
  return "/proc/" + std::to_string(holder.process.pid) + "/fd/" + std::to_string(holder.space);
}

std::string socket_path(const Leases& leases) {
  return sys::fd_path(leases.fd()) + "/" + slirp_socket(kHolderName);
}

Result<ino_t> own_user_namespace() {
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns/user", O_RDONLY));
  return TRY(sys::stat_fd(own, "our own user namespace")).st_ino;
}

/// The user namespace of `process`; checks that it is still that process after opening.
Result<sys::Fd> open_user_namespace(const ProcessName& process) {
  std::string path = "/proc/" + std::to_string(process.pid) + "/ns/user";
  sys::Fd space = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  if (lives(process)) return space;
  return make_error(Kind::not_found, "the holder of the networks has ended");
}

Error in_another_namespace() {
  return make_error(Kind::denied,
                    "give the container its networks: others in them are in another user namespace",
                    "no --pid, --ipc or --network of a container outside of them, and run all of "
                    "them either with or without 'berth unshare'");
}

Result<void> check_own(const Holder& holder) {
  auto space = open_user_namespace(holder.process);
  if (!space.ok() && space.error().kind == Kind::denied) return in_another_namespace();
  sys::Fd opened = TRY(std::move(space));
  ino_t own = TRY(own_user_namespace());
  if (TRY(sys::stat_fd(opened, "the holder's user namespace")).st_ino != own) {
    return in_another_namespace();
  }
  return {};
}

/// Waits for the report of a starting holder: ready, or an error.
Result<void> await_word(const sys::Fd& said) {
  std::string words;
  std::array<char, 4096> part{};
  auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (words.size() < kMaxRecord) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    std::vector<pollfd> entries = {{said.get(), POLLIN, 0}};
    if (left.count() <= 0 || TRY(sys::poll(entries, left)) == 0) {
      return make_error(Kind::interrupted, "start the holder of the networks: timed out");
    }
    size_t count = TRY(sys::read_some(said, part, "the words of the holder"));
    if (count == 0) break;
    words.append(part.data(), count);
    if (words == kReady) return {};
  }
  auto told = read_failure(trim(words));
  if (told) return std::move(*told).with_context("cannot make a place for networks with names");
  return make_error(Kind::io, "start the holder of the networks: " +
                                  (words.empty() ? "it gave no reason" : escape_controls(words)));
}

Result<void> start_holder(const Leases& leases, const Request& request) {
  sys::Pipe said = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  Request told;  // without the members that do not concern the holder
  told.mode = request.mode;
  told.program = request.program;
  told.outside = request.outside;
  told.taken = request.taken;
  told.foreign_space = request.foreign_space;
  sys::SpawnOptions spawn;
  spawn.program = "/proc/self/exe";
  spawn.args = {"berth-network", "hold", leases.path(), json::write(told)};
  spawn.in = spawn.err = &null;
  spawn.out = &said.write;
  spawn.working_directory = "/";
  spawn.die_with_parent = false;
  spawn.new_session = true;
  sys::Process process = TRY(sys::spawn(spawn));
  said.write.reset();
  TRY(await_word(said.read));
  process.release();
  return {};
}

// ---- the holder itself --------------------------------------------------------------------------

/// A new network namespace with loopback.
Result<sys::Fd> make_space() {
  sys::Pipe up = TRY(sys::make_pipe());
  sys::Cloned cloned = TRY(sys::clone3(CLONE_NEWNET, -1));
  if (cloned.pid == 0) {
    bool raised = sys::raise_loopback().ok();
    ignore(sys::write_all(up.write, raised ? "1" : "0", "its parent"));
    std::vector<pollfd> nothing;
    while (true) ignore(sys::poll(nothing, std::nullopt));
  }
  sys::Process child(cloned.pid, std::move(cloned.pidfd));
  up.write.reset();
  std::array<char, 1> word{};
  size_t count = TRY(sys::read_some(up.read, word, "a network namespace"));
  if (count == 0 || word[0] != '1') {
    return make_error(Kind::io, "make a network namespace: its loopback stays down");
  }
  return sys::open_at(sys::cwd(), "/proc/" + std::to_string(child.pid()) + "/ns/net", O_RDONLY);
}

struct Held {
  sys::Fd space;
  Holder holder;
  HelperCall call;
  sys::Process slirp;  ///< empty with pasta
};

Result<void> start_outside(const Leases& leases, Held& held) {
  if (held.holder.outside == kPasta) {
    held.holder.helper = TRY(start_pasta(leases, held.call, held.space));
    return {};
  }
  held.slirp = TRY(start_slirp(leases, held.call, held.space));
  return {};
}

/// The record, even one of an earlier boot; nothing if it does not exist.
Result<std::optional<Holder>> read_record(const Leases& leases) {
  auto text = TRY(sys::read_file_if_exists(leases.fd(), kHolderFile, kMaxRecord));
  if (!text) return std::optional<Holder>();
  return std::optional<Holder>(TRY(json::read<Holder>(*text, leases.path() + "/" + kHolderFile)));
}

void end_helper_of(const Holder& holder) {
  if (!holder.helper) return;
  Lease helped;
  helped.helper = holder.helper;
  end_helper(helped);
}

/// Ends the helper of a killed holder: pasta survives it.
Result<void> end_helper_before(const Leases& leases) {
  auto before = read_record(leases);
  if (!before.ok() && before.error().kind != Kind::corrupt) return std::move(before).error();
  if (before.ok() && *before && (*before)->boot_id == TRY(sys::boot_id())) end_helper_of(**before);
  return {};
}

Result<Held> start_holding(const Leases& leases, const Request& request) {
  TRY(end_helper_before(leases));
  Held held;
  held.space = TRY(make_space());
  std::vector<Subnet> taken;
  for (const std::string& text : request.taken) {
    if (auto subnet = parse_subnet(text)) taken.push_back(*subnet);
  }
  Host host = TRY(look_at_host(std::move(taken)));
  held.call.program = request.program;
  held.call.name = kHolderName;
  held.call.subnet = host.subnet;
  held.call.interface = kOutsideInterface;
  held.call.stays = true;
  Holder& holder = held.holder;
  holder.boot_id = TRY(sys::boot_id());
  holder.process = TRY(name_process(sys::own_pid()));
  holder.space = held.space.get();
  holder.outside = request.outside;
  holder.subnet = host.subnet.text();
  holder.host = host.address;
  TRY(start_outside(leases, held));
  auto recorded = sys::replace_file(leases.fd(), kHolderFile, json::write(holder), 0600);
  if (recorded.ok()) return held;
  end_helper_of(holder);
  return std::move(recorded).error();
}

/// The oldest process, other than this one and the helper, in our user namespace or one below it;
/// we cannot open the namespaces of processes elsewhere. Zombies do not count.
Result<sys::Fd> find_neighbour(const Held& held) {
  std::set<std::pair<uint64_t, int>> found;
  for (const std::string& name : TRY(sys::list_directory(sys::cwd(), "/proc"))) {
    auto number = parse_u64(name);
    int pid = static_cast<int>(number.value_or(0));
    bool is_ours = pid == sys::own_pid() || pid == held.slirp.pid() ||
                   (held.holder.helper && pid == held.holder.helper->pid);
    if (!number || is_ours) continue;
    if (!sys::open_at(sys::cwd(), "/proc/" + name + "/ns/user", O_RDONLY).ok()) continue;
    auto start = sys::process_start_time(pid);
    if (start.ok()) found.emplace(*start, pid);
  }
  for (const auto& [start, pid] : found) {
    auto handle = sys::open_pidfd(pid);
    if (!handle.ok() || !lives({pid, start})) continue;
    if (!TRY(sys::await_end(*handle, std::chrono::milliseconds(0)))) return std::move(*handle);
  }
  return sys::Fd();
}

/// A handle of a process that needs the holder: the process of a container with a lease, or any
/// other process in the holder's user namespace. Empty: there is none.
Result<sys::Fd> find_user(Leases& leases, const Held& held, const Request& request) {
  std::vector<Lease> current = TRY(leases.sweep());
  // Closes the ports of containers that were killed.
  ignore(forward_ports(leases, held.holder, current));
  for (const Lease& lease : current) {
    if (lease.outside.empty()) continue;
    auto handle = sys::open_pidfd(lease.holder.pid);
    if (handle.ok() && lives(lease.holder)) return std::move(*handle);
  }
  return request.foreign_space ? sys::Fd() : find_neighbour(held);
}

/// Waits until `user` ends, and restarts slirp4netns, if that is the helper, whenever it has ended.
Result<void> wait_for(const std::string& directory, Held& held, const sys::Fd& user) {
  while (true) {
    if (held.slirp || held.holder.outside != kSlirp) {
      std::vector<pollfd> entries = {{user.get(), POLLIN, 0}, {-1, POLLIN, 0}};
      if (held.slirp) entries[1].fd = held.slirp.pidfd().get();
      TRY(sys::poll(entries, std::nullopt));
      if (entries[0].revents != 0) return {};
      if (entries[1].revents == 0) continue;
    }
    // The helper was killed. Starts it again and publishes the ports; after a pause, as it may fail
    // repeatedly.
    held.slirp = sys::Process();
    if (TRY(sys::await_end(user, kHelperPause))) return {};
    Leases leases = TRY(Leases::open(directory));
    if (!start_outside(leases, held).ok()) continue;
    ignore(forward_ports(leases, held.holder, TRY(leases.sweep())));
  }
}

void end_holding(const Leases& leases, Held& held) {
  auto recorded = read_record(leases);
  // Otherwise the files belong to another holder now.
  if (!recorded.ok() || (*recorded && (*recorded)->process == held.holder.process)) {
    ignore(sys::remove_entry(leases.fd(), kHolderFile));
    ignore(sys::remove_entry(leases.fd(), slirp_socket(kHolderName)));
  }
  end_helper_of(held.holder);
}

/// Finds a process that needs the holder and waits for its end. False: there was none, and the
/// helper and the record have been removed.
Result<bool> hold_once(const Leases& files, const std::string& directory, Held& held,
                       const Request& request) {
  sys::Fd user;
  {
    // The lock keeps processes from joining us between the check and our end.
    sys::Fd lock = TRY(sys::open_at(files.fd(), kHolderLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    TRY(sys::wait_lock(lock, sys::LockMode::exclusive, kHolderLock));
    Leases leases = TRY(Leases::open(directory));
    user = TRY(find_user(leases, held, request));
    if (!user) {
      end_holding(leases, held);
      return false;
    }
  }
  TRY(wait_for(directory, held, user));
  return true;
}

}  // namespace

Result<std::optional<Holder>> find_holder(const Leases& leases) {
  std::optional<Holder> holder = TRY(read_record(leases));
  bool counts = holder && holder->boot_id == TRY(sys::boot_id()) &&
                sys::runs(holder->process.pid, holder->process.start_time);
  return counts ? std::move(holder) : std::nullopt;
}

Result<Provided> provide_holder(const Leases& leases, const Request& request) {
  auto there = find_holder(leases);
  // An unreadable record names no holder; other failures may hide one.
  if (!there.ok() && there.error().kind != Kind::corrupt) return std::move(there).error();
  if (there.ok() && *there) {
    TRY(check_own(**there));
    return Provided{std::move(**there), false};
  }
  TRY(start_holder(leases, request));
  auto made = TRY(find_holder(leases));
  if (made) return Provided{std::move(*made), true};
  return make_error(Kind::interrupted, "start the holder of the networks: it has ended");
}

Result<void> enter_space(const Holder& holder) {
  sys::Fd user = TRY(open_user_namespace(holder.process));
  ino_t own = TRY(own_user_namespace());
  if (TRY(sys::stat_fd(user, "the holder's user namespace")).st_ino != own) {
    TRY(sys::setns(user, CLONE_NEWUSER, "the user namespace of the networks"));
  }
  sys::Fd space = TRY(sys::open_at(sys::cwd(), space_path(holder), O_RDONLY));
  if (!lives(holder.process)) {
    return make_error(Kind::not_found, "the holder of the networks has ended");
  }
  return sys::setns(space, CLONE_NEWNET, "the network namespace of the networks");
}

Result<void> forward_ports(const Leases& leases, const Holder& holder,
                           const std::vector<Lease>& current) {
  std::vector<Published> wanted;
  for (const Lease& lease : current) {
    if (lease.outside.empty()) continue;
    wanted.insert(wanted.end(), lease.ports.begin(), lease.ports.end());
  }
  if (holder.outside == kSlirp) return forward_by_slirp(socket_path(leases), wanted);
  return add_ports(leases, holder, wanted);
}

Result<void> add_ports(const Leases& leases, const Holder& holder,
                       const std::vector<Published>& ports) {
  if (holder.outside == kSlirp) {
    for (const Published& port : ports) {
      TRY(publish_by_slirp(socket_path(leases), port, port.inner_port));
    }
    return {};
  }
  if (ports.empty()) return {};
  return make_error(Kind::unsupported,
                    "publish a port of a container in a named network: pasta cannot do it",
                    sys::how_to_install("slirp4netns"));
}

void choose_inner_ports(std::vector<Published>& ports, const std::vector<Lease>& current) {
  std::set<std::pair<std::string, unsigned>> taken;
  for (const Lease& lease : current) {
    for (const Published& port : lease.ports) taken.emplace(port.protocol, port.inner_port);
  }
  for (Published& port : ports) {
    unsigned chosen = port.host_port;  // the same number as on the host, if it is free
    while (!taken.emplace(port.protocol, chosen).second) chosen = chosen % 65535 + 1;
    port.inner_port = static_cast<uint16_t>(chosen);
  }
}

Result<void> hold(const std::string& directory, const Request& request) {
  sys::Fd out(STDOUT_FILENO);
  Leases files = TRY(Leases::unlocked(directory));
  auto held = start_holding(files, request);
  if (!held.ok()) {
    ignore(sys::write_all(out, write_failure(held.error()) + "\n", "the caller"));
    return {};
  }
  {
    // If the caller has disconnected, SIGPIPE must not end us, because pasta would stay behind.
    // Ignored only from here on, because pasta must not inherit the ignored signal.
    sys::IgnoredSignal gone(SIGPIPE);
    ignore(sys::write_all(out, kReady, "the caller"));
  }
  out.reset();
  // A machine may lack memory or descriptors for a while, and containers depend on the holder.
  int failures = 0;
  while (failures < kMostFailures) {
    auto goes_on = hold_once(files, directory, *held, request);
    if (goes_on.ok() && !*goes_on) return {};
    if (!goes_on.ok() && goes_on.error().kind == Kind::not_found) break;  // the directory is gone
    failures = goes_on.ok() ? 0 : failures + 1;
    if (failures > 0) std::this_thread::sleep_for(kHelperPause);
  }
  end_holding(files, *held);
  return {};
}

}  // namespace berth::network
