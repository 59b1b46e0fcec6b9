// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/apply.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/child/attributes.hpp"
#include "runtime/child/devices.hpp"
#include "runtime/child/host_descriptors.hpp"
#include "runtime/child/join.hpp"
#include "runtime/child/loader_files.hpp"
#include "runtime/child/mounts.hpp"
#include "runtime/child/program.hpp"
#include "runtime/seccomp/seccomp.hpp"
#include "runtime/state/hooks.hpp"
#include "runtime/state/state.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/program.hpp"
#include "sys/process/pty.hpp"
#include "sys/process/scheduling.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

template <class... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overload(Functions...) -> Overload<Functions...>;

Result<void> await_cgroup(Inside& inside) {
  ChildReport joined = TRY(inside.channel.expect(Message::cgroup_joined));
  inside.host_pid = static_cast<pid_t>(joined.number);
  const auto& layout = inside.prepared.scope_layout;
  std::string place = joined.text;  // empty: systemd has refused to make a scope
  if (layout && place.empty()) inside.cgroups = cgroup_views(*layout, CgroupSet());
  if (layout && !place.empty()) {
    inside.cgroups = cgroup_views(*layout, TRY(CgroupSet::open(*layout, place)));
  }
  return {};
}

Result<void> await_confinement(Inside& inside) {
  ChildReport confined = TRY(inside.channel.expect(Message::confined));
  inside.seccomp_size = static_cast<size_t>(confined.number);
  return {};
}

Result<void> enter_shared_root(Inside& inside, const plan::EnterSharedRoot& step) {
  sys::exchange_null_streams(sys::Fd());
  std::string context = "cannot enter the root " + quote(step.path);
  if (inside.mount_space) {
    TRY_CTX(sys::setns(inside.mount_space, CLONE_NEWNS, step.mount_namespace), context);
  }
  sys::Fd root = TRY_CTX(sys::open_at(sys::cwd(), step.path, O_PATH | O_DIRECTORY), context);
  TRY_CTX(sys::change_root(root, step.path), context);
  TRY(sys::forbid_tracing());  // as in enter_root()
  root.reset();
  TRY(close_host_descriptors(inside));
  inside.root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  return {};
}

Result<void> enter_root_for_good(Inside& inside, const plan::EnterRoot& step) {
  // Done while /proc is that of the host.
  sys::exchange_null_streams(sys::find_null_device(inside.root));
  TRY(enter_root(inside, step));
  return close_host_descriptors(inside);
}

/// A path may lead to the caller's own namespace, where a setting would apply to the machine.
Result<void> check_not_shared(const Inside& inside, const std::string& space,
                              const std::string& member) {
  if (!inside.shared.contains(space)) return {};
  return make_error(Kind::usage, "config.json: " + member + ": the " + space +
                                     " namespace is the one of the caller");
}

Result<void> set_sysctl(Inside& inside, const plan::SetSysctl& step) {
  TRY(check_not_shared(inside, step.space, "linux.sysctl: " + quote(step.key)));
  std::string path = "/proc/sys/" + step.key;
  std::replace(path.begin() + 10, path.end(), '.', '/');
  // Opened in the host's procfs. The file belongs to the namespaces of the process that opens it.
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  return sys::write_all(file, step.value, path);
}

Result<void> set_hostname(const Inside& inside, const plan::SetHostname& step) {
  TRY(check_not_shared(inside, "uts", "hostname"));
  return sys::set_hostname(step.name);
}

Result<void> set_domainname(const Inside& inside, const plan::SetDomainname& step) {
  TRY(check_not_shared(inside, "uts", "domainname"));
  return sys::set_domainname(step.name);
}

Result<void> set_oom_score(const plan::SetOomScore& step) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), "/proc/self/oom_score_adj", O_WRONLY));
  return sys::write_all(file, std::to_string(step.score), "/proc/self/oom_score_adj");
}

/// For a hook that runs inside the container: the environment of the container's program.
Result<HookPlace> place_inside(const plan::Plan& plan, Inside& inside) {
  HookPlace place;
  if (const auto* program = plan::find<plan::Execute>(plan)) place.env = program->env;
  if (const auto* home = plan::find<plan::FindHome>(plan)) TRY(find_home(inside, *home));
  if (inside.home) place.env.push_back("HOME=" + *inside.home);
  return place;
}

Result<void> call_hooks(const plan::Plan& plan, Inside& inside, const plan::RunHooks& step) {
  if (step.stage == "prestart" || step.stage == "createRuntime") {
    TRY(inside.channel.send(Message::hooks_due, step.stage));
    TRY(inside.channel.expect(Message::hooks_done));
    return {};
  }
  State state;
  state.id = inside.prepared.id;
  state.bundle = inside.prepared.bundle;
  state.pid = inside.host_pid;
  if (step.stage == "startContainer") {
    return run_hooks(step.stage, step.hooks, public_state(state, "created"),
                     TRY(place_inside(plan, inside)));
  }
  // The working directory is the root: such hooks name files in the root without a leading slash,
  // as under runc.
  std::string directory = inside.root ? sys::fd_path(inside.root) : state.bundle;
  return run_hooks(step.stage, step.hooks, public_state(state, "creating"), {directory, true});
}

Result<void> load_filter(Inside& inside) {
  const void* program = inside.prepared.seccomp.bytes().data();
  sys::Fd listener =
      TRY(load_seccomp({static_cast<const sock_filter*>(program), inside.seccomp_size},
                       inside.prepared.seccomp_flags));
  return listener ? inside.channel.offer_listener(listener.get()) : Result<void>();
}

Result<void> make_keyring() {
  auto made = sys::make_session_keyring();
  if (made.ok()) return made;
  // If we may not use keyrings at all, the container may not either.
  bool none = made.error().sys_errno == ENOSYS || made.error().sys_errno == EPERM;
  if (none) return {};
  Error error = std::move(made).error();
  if (error.sys_errno == EDQUOT) error.hint = "--no-new-keyring";
  return error;
}

Result<void> set_affinity(const plan::SetAffinity& step) {
  TRY_CTX(sys::set_affinity(step.processors), "cannot apply process.execCPUAffinity.final");
  return {};
}

/// The only place that executes steps. The sentence above each case says why a caller without
/// rights on the host may ask for it.
Result<void> apply_step(const plan::Plan& plan, Inside& inside, const plan::Step& step) {
  return std::visit(
      Overload{
          // Done by the parent.
          [&](const plan::MakeCgroup&) { return Result<void>(); },
          // The kernel checks the rights over a joined namespace.
          [&](const plan::Spawn& s) { return enter_namespaces(plan, inside, s); },
          // The kernel checks the rights over each namespace. The steps that follow are limited by
          // the container's config.
          [&](const plan::JoinContainer& s) { return join_container(plan, inside, s); },
          // The namespace is new and belongs to the container.
          [&](const plan::EnterTimeNamespace& s) { return enter_time_namespace(inside, s); },
          // Done by the parent; the child never sees it.
          [&](const plan::JoinResctrl&) { return Result<void>(); },
          // The kernel checks the change of label.
          [&](const plan::SetLabels& s) { return set_labels(s); },
          // Better values than the present ones need CAP_SYS_NICE.
          [&](const plan::SetScheduler& s) { return set_scheduler(s); },
          // Better values than the present ones need CAP_SYS_NICE or CAP_SYS_ADMIN.
          [&](const plan::SetIoPriority& s) { return set_io_priority(s); },
          // Within the nodes of the cpuset.
          [&](const plan::SetMemoryPolicy& s) { return set_memory_policy(s); },
          // Affects only this process.
          [&](const plan::SetPersonality& s) { return set_personality(s); },
          // Within the processors of the cpuset.
          [&](const plan::SetAffinity& s) { return set_affinity(s); },
          // Within the cpuset, as any program may for itself.
          [&](const plan::ResetAffinity& s) { return reset_affinity(s); },
          // Within the cpuset, as any program may for itself.
          [&](const plan::PreferPlace& s) { return prefer_place(s); },
          // Takes only the caller's keys away.
          [&](const plan::MakeKeyring&) { return make_keyring(); },
          // Only this mount namespace changes.
          [&](const plan::IsolateMounts&) { return isolate_mounts(); },
          // Hides all cgroups outside of the one that the process is in already.
          [&](const plan::EnterCgroupNamespace&) {
            return sys::unshare(CLONE_NEWCGROUP, "cgroup namespace");
          },
          // The layers are opened with the caller's rights.
          [&](const plan::MountOverlayRoot& s) { return mount_overlay_root(inside, s); },
          // As for MountOverlayRoot; the mount is read-only.
          [&](const plan::MountLayers& s) { return mount_layers(inside, s); },
          // A view of a directory that is accessible to the caller.
          [&](const plan::BindRoot& s) { return bind_root(inside, s); },
          // The kernel decides which types this user namespace may mount.
          [&](const plan::MountFilesystem& s) { return mount_file_system(inside, s); },
          // A view of a file that is accessible to the caller; the restrictions of the mount stay.
          [&](const plan::MountBind& s) { return mount_bind(inside, s); },
          // The kernel checks the rights over the mount and its file system.
          [&](const plan::ChangeMount& s) { return change_mount(inside, s); },
          // Only the container's own directories.
          [&](const plan::MountCgroups& s) { return mount_cgroups(inside, s); },
          // Making a node needs CAP_MKNOD of the machine; the device cgroup limits its use.
          [&](const plan::MakeNode& s) { return make_node(inside, s); },
          // A view of a node that is accessible to the caller, checked to be the expected device.
          [&](const plan::BindNode& s) { return bind_node(inside, s); },
          // A name inside the root.
          [&](const plan::MakeLink& s) { return make_link(inside, s); },
          // A name in the container's root or its own /dev, in no other mount.
          [&](const plan::ReplaceLink& s) { return replace_link(inside, s); },
          // Names in the container's root, in no other mount, and read-only files of its state.
          [&](const plan::PlaceLoaderFiles& s) { return place_loader_files(inside, s); },
          // Reads the image's bytes with the rights of the image's program.
          [&](const plan::FillLoaderFiles& s) { return fill_loader_files(inside, s); },
          // A terminal of the container's own devpts.
          [&](const plan::MakeConsole& s) { return make_console(inside, s); },
          // Only hides files.
          [&](const plan::MaskPaths& s) { return mask_paths(inside, s); },
          // Takes only the right to write away.
          [&](const plan::MakeReadonly& s) { return make_readonly(inside, s); },
          // Done by the parent, with the caller's rights; later steps may name the interfaces.
          [&](const plan::MoveInterfaces&) { return Result<void>(); },
          // The network namespace is new and belongs to the container.
          [&](const plan::RaiseLoopback&) { return sys::raise_loopback(); },
          // plan::make() accepted only keys of the container's namespaces.
          [&](const plan::SetSysctl& s) { return set_sysctl(inside, s); },
          // The UTS namespace belongs to the container.
          [&](const plan::SetHostname& s) { return set_hostname(inside, s); },
          // The UTS namespace belongs to the container.
          [&](const plan::SetDomainname& s) { return set_domainname(inside, s); },
          // The kernel refuses a lower score without CAP_SYS_RESOURCE.
          [&](const plan::SetOomScore& s) { return set_oom_score(s); },
          // Hooks are the caller's programs with the caller's rights.
          [&](const plan::RunHooks& s) { return call_hooks(plan, inside, s); },
          // Nothing of the host can be reached afterwards.
          [&](const plan::EnterRoot& s) { return enter_root_for_good(inside, s); },
          // A directory that is accessible to the caller; nothing is mounted.
          [&](const plan::EnterSharedRoot& s) { return enter_shared_root(inside, s); },
          // The kernel refuses a higher hard limit without CAP_SYS_RESOURCE.
          [&](const plan::SetRlimit& s) {
            return sys::set_rlimit(s.resource, s.soft, s.hard, s.type);
          },
          // Takes only capabilities away.
          [&](const plan::LimitCapabilities& s) { return sys::limit_bounding_set(s.bounding); },
          // A directory inside the root, opened by handle.
          [&](const plan::EnterDirectory& s) { return enter_directory(inside, s); },
          // Ids of this user namespace, read back after the change.
          [&](const plan::SetIdentity& s) {
            return set_identity(inside, s, *plan::find<plan::EnterDirectory>(plan));
          },
          // Only capabilities that this process has already.
          [&](const plan::SetCapabilities& s) { return set_capabilities(s); },
          // Affects only this process.
          [&](const plan::SetUmask& s) {
            sys::set_umask(s.mask);
            return Result<void>();
          },
          // Takes only rights away.
          [&](const plan::ForbidNewPrivileges&) { return sys::forbid_new_privileges(); },
          // Takes only system calls away.
          [&](const plan::LoadSeccomp&) { return load_filter(inside); },
          // Examines files with the rights of the container's user.
          [&](const plan::FindProgram& s) { return find_program(inside, s); },
          // Reads a file of the root with the rights of the container's user.
          [&](const plan::FindHome& s) { return find_home(inside, s); },
          // Waits for a process that can reach the state directory.
          [&](const plan::AwaitStart&) { return await_start(inside); },
          // Both steps wait only for berth-runtime.
          [&](const plan::AwaitCgroup&) { return await_cgroup(inside); },
          [&](const plan::AwaitConfinement&) { return await_confinement(inside); },
          // Executes the caller's program, with no more rights than the steps above have left.
          [&](const plan::Execute& s) { return Result<void>(execute(inside, s)); },
      },
      step);
}

int exit_code(const Error& error, Stage stage) {
  return stage == Stage::engine ? kEngineFailed : command_status(error);
}

[[noreturn]] void fail(Inside& inside, const Error& error, Stage stage) {
  const Channel& listener = inside.ready ? inside.starter : inside.channel;
  ignore(listener.send(to_report(error, stage)));  // the other end may be closed
  ::_exit(exit_code(error, stage));
}

}  // namespace

void apply(const plan::Plan& plan, const Prepared& prepared, Channel channel,
           std::vector<sys::Fd> tasks_files) {
  Inside inside{prepared, std::move(channel)};
  for (const auto& tasks_file : tasks_files) {
    auto moved = sys::write_all(tasks_file, "0", "tasks");
    if (!moved.ok()) {
      fail(inside, std::move(moved).error().with_context("cannot join the cgroup"), Stage::engine);
    }
  }
  tasks_files.clear();
  inside.cgroups = prepared.cgroups;
  inside.shared = prepared.born_into.shared;
  sys::reset_signals();
  ignore(sys::die_with_parent(SIGKILL));  // cannot fail for a valid signal
  sys::set_umask(0);
  // setsid cannot fail, because a new process leads no process group. A process that will fork
  // again needs no session, which would cost a scheduling group in the kernel.
  bool forks_again = prepared.joined && prepared.joined->forks_again();
  if (!forks_again) ignore(sys::new_session());
  // Descriptors that the caller has left open must not reach the container; those that we open
  // ourselves are CLOEXEC.
  auto closed = sys::close_on_exec_from(3 + static_cast<unsigned>(prepared.preserve_fds));
  if (!closed.ok()) fail(inside, closed.error(), Stage::engine);
  for (const auto& step : plan.steps) {
    auto done = apply_step(plan, inside, step);
    const auto* directory = std::get_if<plan::EnterDirectory>(&step);
    bool command = std::holds_alternative<plan::Execute>(step) ||
                   std::holds_alternative<plan::FindProgram>(step) ||
                   (directory != nullptr && directory->missing == plan::Missing::refused);
    if (!done.ok()) fail(inside, done.error(), command ? Stage::command : Stage::engine);
  }
  fail(inside, make_error(Kind::bug, "apply a plan without a program"), Stage::engine);
}

}  // namespace berth::runtime
