// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/child.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "json/value.hpp"
#include "runtime/child/apply.hpp"
#include "runtime/child/namespaces.hpp"
#include "runtime/seccomp/seccomp.hpp"
#include "slurm/hold.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

Error explain(Error error, uint64_t namespaces) {
  if (error.kind == Kind::denied && namespaces != 0 && !(namespaces & CLONE_NEWUSER)) {
    error.hint =
        "a user namespace in linux.namespaces, as 'berth-runtime spec --rootless' writes it";
  }
  return error;
}

struct Born {
  sys::Cloned process;
  bool in_cgroup = false;
};

Result<Born> bear(uint64_t flags, int cgroup) {
  auto cloned = sys::clone3(flags, cgroup);
  bool in_cgroup = cloned.ok() && cgroup >= 0;
  // The kernel is older than 5.7, or we may not start processes in that cgroup: the process is
  // moved afterwards.
  if (!cloned.ok() && cgroup >= 0) cloned = sys::clone3(flags, -1);
  if (!cloned.ok()) return std::move(cloned).error();
  return Born{std::move(*cloned), in_cgroup};
}

constexpr std::string_view kInCgroup = "in its cgroup";

}  // namespace

Result<Child> make_child(const plan::Plan& plan, const Prepared& prepared, uint64_t namespaces,
                         const CgroupSet& cgroups) {
  auto [ours, theirs] = TRY(sys::socket_pair());
  auto tasks_files = cgroups.open_tasks_files();
  auto born = bear(namespaces, cgroups.unified_fd());
  if (!born.ok()) return explain(std::move(born).error(), namespaces);
  sys::Cloned& child = born->process;
  if (child.pid == 0) {
    ours.reset();
    apply(plan, prepared, Channel(std::move(theirs)),
          tasks_files.ok() ? std::move(*tasks_files) : std::vector<sys::Fd>());
  }
  return Child{.process = sys::Process(child.pid, std::move(child.pidfd)),
               .channel = Channel(std::move(ours)),
               .in_cgroup = born->in_cgroup,
               .moves_itself = tasks_files.ok()};
}

Result<Child> make_child_in(const plan::Plan& plan, Prepared& prepared, const plan::Spawn& spawn,
                            uint64_t namespaces, const CgroupSet& cgroups) {
  auto [ours, theirs] = TRY(sys::socket_pair());
  auto [told, tells] = TRY(sys::socket_pair());
  auto tasks_files = cgroups.open_tasks_files();
  sys::Cloned between = TRY(sys::clone3(0, -1));
  if (between.pid == 0) {
    told.reset();
    Channel sender(std::move(tells));
    auto place = enter_birth_place(spawn);
    Result<Born> born = make_error(Kind::bug, "no process was made");
    if (place.ok()) {
      prepared.born_into = std::move(*place);
      born = bear(CLONE_PARENT | namespaces, cgroups.unified_fd());
      if (!born.ok()) born = explain(std::move(born).error(), namespaces);
    } else {
      born = std::move(place).error();
    }
    if (born.ok() && born->process.pid == 0) {
      ours.reset();
      sender = Channel(sys::Fd());
      apply(plan, prepared, Channel(std::move(theirs)),
            tasks_files.ok() ? std::move(*tasks_files) : std::vector<sys::Fd>());
    }
    // The born process is a child of our parent, and its pid is one in the pid namespace that we
    // are still in.
    auto sent = born.ok() ? sender.send(Message::born, born->in_cgroup ? kInCgroup : "",
                                        born->process.pid, born->process.pidfd)
                          : sender.send(to_report(born.error(), Stage::engine));
    ::_exit(born.ok() && sent.ok() ? 0 : 1);
  }
  sys::Process maker(between.pid, std::move(between.pidfd));
  theirs.reset();
  tells.reset();
  auto incoming = TRY(Channel(std::move(told)).receive());
  ignore(maker.wait());
  if (!incoming) return make_error(Kind::interrupted, "make a process in other namespaces");
  if (incoming->report.message != Message::born) return to_error(incoming->report);
  return Child{.process = sys::Process(static_cast<pid_t>(incoming->report.number),
                                       std::move(incoming->passed)),
               .channel = Channel(std::move(ours)),
               .in_cgroup = std::string_view(incoming->report.text) == kInCgroup,
               .moves_itself = tasks_files.ok()};
}

Result<void> add_to_cgroups(const Child& child, const CgroupSet& cgroups) {
  pid_t pid = child.process.pid();
  if (child.moves_itself) {
    return child.in_cgroup ? Result<void>() : cgroups.add_to_unified(pid);
  }
  return cgroups.add(
      pid, child.in_cgroup ? CgroupSet::Unified::already_inside : CgroupSet::Unified::join);
}

Result<std::optional<Channel::Incoming>> Child::receive() {
  if (early.empty()) return channel.receive();
  std::optional<Channel::Incoming> first = std::move(early.front());
  early.pop_front();
  return first;
}

Result<void> await_second_fork(Child& child) {
  while (true) {
    auto incoming = TRY(child.channel.receive());
    if (!incoming) return make_error(Kind::interrupted, "join the container: it has ended");
    if (incoming->report.message == Message::born) {
      // The first process has reported and ends; it is reaped later.
      child.first_born = std::move(child.process);
      child.process =
          sys::Process(static_cast<pid_t>(incoming->report.number), std::move(incoming->passed));
      return {};
    }
    child.early.push_back(std::move(*incoming));
  }
}

namespace {

Result<void> give_rights(const plan::Plan& plan, const Prepared& prepared,
                         std::span<const sock_filter> program) {
  if (!prepared.rights_fd) return {};
  slurm::Rights rights;
  const auto* capabilities = plan::find<plan::SetCapabilities>(plan);
  rights.bounding = capabilities != nullptr ? capabilities->bounding : 0;
  rights.no_new_privileges = plan::find<plan::ForbidNewPrivileges>(plan) != nullptr ? 1 : 0;
  rights.seccomp_flags = prepared.seccomp_flags;
  rights.instructions = static_cast<uint32_t>(program.size());
  std::string text(reinterpret_cast<const char*>(&rights), sizeof rights);
  text.append(reinterpret_cast<const char*>(program.data()), program.size_bytes());
  sys::Fd file(static_cast<int>(*prepared.rights_fd));
  auto written = sys::write_all(file, text, "--rights-fd");
  if (written.ok()) written = sys::seal(file, "--rights-fd");
  file.release();
  return written;
}

}  // namespace

Result<void> prepare_filter(const plan::Plan& plan, Prepared& prepared) {
  const auto* seccomp = plan::find<plan::LoadSeccomp>(plan);
  // Without a filter the child does not wait for a program.
  if (seccomp == nullptr) return give_rights(plan, prepared, {});
  if (needs_listener(seccomp->profile) && seccomp->profile.listener_path.empty()) {
    return make_error(Kind::usage, "config.json: linux.seccomp.listenerPath: missing");
  }
  if (seccomp->refuse_unknown) TRY(check_calls(seccomp->profile));
  prepared.seccomp_flags = TRY(seccomp_flags(seccomp->profile));
  prepared.seccomp = TRY(sys::SharedBuffer::make(kMaxSeccompInstructions * sizeof(sock_filter)));
  return {};
}

Result<FilterSize> write_filter(const plan::Plan& plan, const Prepared& prepared) {
  const auto* seccomp = plan::find<plan::LoadSeccomp>(plan);
  if (seccomp == nullptr) return FilterSize{};
  auto program = TRY(compile_seccomp(seccomp->profile));
  auto bytes = std::as_bytes(std::span(program));
  TRY(give_rights(plan, prepared, program));
  // std::ranges::copy() copies byte by byte here.
  std::copy(bytes.begin(), bytes.end(), prepared.seccomp.bytes().begin());
  return FilterSize{static_cast<int64_t>(program.size())};
}

void send_confined(const Channel& channel, FilterSize filter) {
  // The child may have failed already; its report says why.
  ignore(channel.send(Message::confined, {}, filter.instructions));
}

Result<void> place_and_attend(const Child& child, const std::function<Result<void>()>& place,
                              const std::function<Result<void>()>& attend) {
  auto placed = place();
  if (placed.ok()) return attend();
  std::vector<pollfd> entries{{child.channel.fd().get(), POLLIN, 0}};
  bool told = TRY(sys::poll(entries, std::chrono::milliseconds(0))) > 0 || !child.early.empty();
  if (told) {
    auto heard = attend();
    if (!heard.ok() && heard.error().kind != Kind::interrupted) return heard;
  }
  return placed;
}

Result<void> hand_over(const std::string& path, const sys::Fd& passed, std::string_view name) {
  sys::Fd socket = TRY(sys::connect_unix(path, sys::SocketType::stream));
  return sys::send_message(socket, name.data(), name.size(), passed);
}

namespace {

std::string process_state(const oci::Seccomp& profile, const State& state, std::string_view status,
                          pid_t pid) {
  json::Object object;
  object.emplace_back("ociVersion", state.oci_version);
  object.emplace_back("fds", json::Array{json::Value("seccompFd")});
  object.emplace_back("pid", int64_t{pid});
  object.emplace_back("metadata", profile.listener_metadata);
  object.emplace_back("state", public_state_value(state, status));
  return json::dump(json::Value(std::move(object)));
}

}  // namespace

Result<void> pass_listener(const plan::LoadSeccomp& step, const State& state,
                           std::string_view status, const Child& child, int64_t number) {
  const std::string& path = step.profile.listener_path;
  std::string context = "cannot pass the seccomp listener to " + quote(path);
  sys::Fd listener =
      TRY_CTX(sys::take_descriptor(child.process.pidfd(), static_cast<int>(number)), context);
  std::string text = process_state(step.profile, state, status, child.process.pid());
  TRY_CTX(hand_over(path, listener, text), context);
  return child.channel.acknowledge_listener();
}

}  // namespace berth::runtime
