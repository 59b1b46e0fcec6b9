// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec.hpp"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "oci/config.hpp"
#include "oci/process_changes.hpp"
#include "plan/attributes.hpp"
#include "runtime/cgroup/files.hpp"
#include "runtime/cgroup/scope.hpp"
#include "runtime/child/child.hpp"
#include "runtime/foreground.hpp"
#include "runtime/state/bundle.hpp"
#include "runtime/state/find.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/scheduling.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxDocument = size_t{16} << 20;

// Members that a document leaves out are taken from the container, as in runc.
oci::Process completed(oci::Process process, const oci::Process& container) {
  if (!process.capabilities) process.capabilities = container.capabilities;
  if (process.rlimits.empty()) process.rlimits = container.rlimits;
  if (process.apparmor_profile.empty()) process.apparmor_profile = container.apparmor_profile;
  if (process.selinux_label.empty()) process.selinux_label = container.selinux_label;
  // Not inherited from the caller: a daemon may have a score that protects it from the OOM killer.
  if (!process.oom_score_adj) process.oom_score_adj = container.oom_score_adj;
  return process;
}

/// Adds the groups that devices of the container need and that the config does not list.
void add_groups(const State& state, oci::Process& process) {
  auto& gids = process.user.additional_gids;
  for (uint32_t gid : state.added_gids) {
    if (std::ranges::find(gids, gid) == gids.end()) gids.push_back(gid);
  }
}

/// The container's config, in which `process` is replaced by that of exec.
Result<oci::Spec> read_spec(const State& state, const ExecRequest& request) {
  Bundle bundle =
      TRY_CTX(read_bundle(state.bundle, state.config), "cannot read bundle " + quote(state.bundle));
  oci::Spec spec = std::move(bundle.spec);
  oci::Process own = spec.process.value_or(oci::Process{});
  if (request.process_file.empty()) {
    spec.process = oci::with_changes(std::move(own), request.changes);
    add_groups(state, *spec.process);
    return spec;
  }
  std::string document = TRY(sys::read_file(sys::cwd(), request.process_file, kMaxDocument));
  oci::Process process = TRY(oci::parse_process(document, request.process_file));
  process.terminal = process.terminal || request.changes.terminal;
  spec.process = completed(std::move(process), own);
  add_groups(state, *spec.process);
  return spec;
}

/// Whether the container's root is the root of its mount namespace.
bool has_own_root(const oci::Spec& spec) {
  return std::ranges::any_of(spec.linux_.namespaces, [](const auto& space) {
    return space.type == "mount" && space.path.empty();
  });
}

/// CLONE_NEW* of the namespaces of `pid` that are not ours already.
Result<int> foreign_namespaces(pid_t pid) {
  // A set: the kernel orders them.
  constexpr std::array<std::pair<const char*, int>, 8> kNamespaceFlags = {
      {{"user", CLONE_NEWUSER},
       {"mnt", CLONE_NEWNS},
       {"pid", CLONE_NEWPID},
       {"net", CLONE_NEWNET},
       {"ipc", CLONE_NEWIPC},
       {"uts", CLONE_NEWUTS},
       {"cgroup", CLONE_NEWCGROUP},
       {"time", CLONE_NEWTIME}}};
  sys::Fd own = TRY(sys::open_at(sys::cwd(), "/proc/self/ns", O_RDONLY | O_DIRECTORY));
  std::string path = "/proc/" + std::to_string(pid) + "/ns";
  // O_PATH, because only the owner of that process may list the directory, and an ordinary user's
  // container may run its program under another id.
  sys::Fd its = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY));
  int flags = 0;
  for (const auto& [name, flag] : kNamespaceFlags) {
    auto here = sys::read_link(own, name);
    if (!here.ok()) continue;  // the kernel lacks this type
    std::string there = TRY(sys::read_link(its, name));
    if (*here != there) flags |= flag;
  }
  return flags;
}

/// The v2 directory of the container's first process. If the container has made child cgroups with
/// controllers, its top directory accepts no processes.
Result<sys::Fd> cgroup_of(pid_t pid) {
  CgroupLayout layout = TRY(detect_cgroup_layout());
  std::string text =
      TRY(sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/cgroup", 65536));
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("0::/") || layout.unified() == nullptr) continue;
    std::string path = layout.unified()->mount + std::string(line.substr(3));
    return sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY);
  }
  return make_error(Kind::not_found, "find the cgroup of process " + std::to_string(pid));
}

/// Changes our own affinity for the time of the clone, because the new process inherits it.
class Affinity {
 public:
  static Result<Affinity> set(const oci::Process& process) {
    Affinity affinity;
    if (!process.exec_cpu_affinity) return affinity;
    constexpr const char* kMember = "process.execCPUAffinity.initial";
    auto wanted = TRY(plan::parse_cpu_list(process.exec_cpu_affinity->initial, kMember));
    if (wanted.empty()) return affinity;
    affinity.before_ = TRY(sys::affinity());
    TRY_CTX(sys::set_affinity(wanted), std::string("cannot apply ") + kMember);
    return affinity;
  }
  Affinity(Affinity&& other) noexcept : before_(std::exchange(other.before_, {})) {}
  Affinity& operator=(Affinity&&) = delete;
  ~Affinity() {
    if (!before_.empty()) ignore(sys::set_affinity(before_));  // restores our own affinity
  }

 private:
  Affinity() = default;
  std::vector<unsigned> before_;
};

/// Performs one exec; the order of the steps is in exec().
class Executor {
 public:
  Executor(const Store& store, const ExecRequest& request, Report& report, Log& log)
      : store_(store), request_(request), report_(report), log_(log) {}

  Result<void> find();
  void charge_container();
  Result<void> decide(Detach detach);
  Result<void> prepare(Detach detach);
  Result<void> spawn();
  Result<void> place();
  Result<void> attend();
  Result<void> publish();
  Child& child() { return child_; }
  sys::Fd take_console() { return std::move(console_); }

 private:
  Result<CgroupSet> open_cgroups() const;

  const Store& store_;
  const ExecRequest& request_;
  Report& report_;
  Log& log_;
  std::optional<Found> found_;
  oci::Spec spec_;
  plan::Plan plan_;
  Prepared prepared_;
  Child child_;
  sys::Fd console_;
};

Result<void> Executor::find() {
  found_ = TRY(runtime::find(store_, request_.id));
  if (found_->status == Status::paused && !request_.ignore_paused) {
    return make_error(Kind::usage, "container " + quote(request_.id) + " is paused",
                      "berth-runtime resume " + request_.id);
  }
  bool alive = found_->status == Status::created || found_->status == Status::running ||
               found_->status == Status::paused;
  if (alive) return {};
  return make_error(Kind::usage, "container not running: " + quote(request_.id));
}

void Executor::charge_container() {
  if (!request_.charge_container) return;
  // Of cgroup v1 only cpu and cpuacct are joined: in the freezer this process could not be killed
  // while the container is paused, and the limits of pids or memory may be used up. "0" means the
  // writing process.
  for (const char* controller : {"", "cpu", "cpuacct"}) {
    const sys::Fd* directory = found_->cgroups.directory(controller);
    if (directory != nullptr) ignore(write_cgroup_file(*directory, "cgroup.procs", "0"));
  }
}

Result<void> Executor::decide(Detach detach) {
  spec_ = TRY(read_spec(found_->state, request_));
  TRY(check_console(spec_.process->terminal, detach, request_.console_socket));
  plan::Container container;
  container.of_engine = found_->state.of_engine;
  plan_ = TRY(plan::make_exec(spec_, container, host_facts(spec_)));
  for (const auto& warning : plan_.warnings) log_.warn(warning);
  return {};
}

Result<void> Executor::prepare(Detach detach) {
  const State& state = found_->state;
  prepared_.die_with_parent = detach == Detach::no;
  prepared_.id = state.id;
  prepared_.bundle = state.bundle;
  prepared_.activation = request_.activation;
  prepared_.preserve_fds = request_.activation.count + request_.preserve_fds;
  prepared_.rights_fd = request_.rights_fd;
  Joined joined;
  sys::Process first = TRY(first_process(state));
  joined.first_process = TRY(sys::duplicate(first.pidfd()));
  first.release();  // not our child
  joined.namespaces = TRY(foreign_namespaces(state.pid));
  std::string path = "/proc/" + std::to_string(state.pid) + "/root";
  auto root = sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY);
  bool own_root = has_own_root(spec_);
  sys::exchange_null_streams(root.ok() && own_root ? sys::find_null_device(*root) : sys::Fd());
  if (!own_root) joined.root = TRY(std::move(root));
  prepared_.joined = std::move(joined);
  if (!request_.cgroup.empty()) {
    found_->cgroups = TRY_CTX(open_cgroups(), "cannot open cgroup " + quote(request_.cgroup));
  }
  return prepare_filter(plan_, prepared_);
}

// "memory:a/b" goes below the container's directory of one controller, "a/b" below all.
Result<CgroupSet> Executor::open_cgroups() const {
  size_t colon = request_.cgroup.find(':');
  if (colon == std::string::npos) return found_->cgroups.below("", request_.cgroup);
  return found_->cgroups.below(request_.cgroup.substr(0, colon), request_.cgroup.substr(colon + 1));
}

Result<void> Executor::spawn() {
  Affinity affinity = TRY(Affinity::set(*spec_.process));
  child_ = TRY(make_child(plan_, prepared_, 0, found_->cgroups));
  return {};
}

Result<void> Executor::place() {
  // Done while the child joins the container and forks again.
  FilterSize filter = TRY(write_filter(plan_, prepared_));
  if (prepared_.joined->forks_again()) TRY(await_second_fork(child_));
  pid_t pid = child_.process.pid();
  auto added = add_to_cgroups(child_, found_->cgroups);
  if (!added.ok() && added.error().sys_errno == EBUSY) {
    sys::Fd directory = TRY(cgroup_of(found_->state.pid));
    TRY(write_cgroup_file(directory, "cgroup.procs", std::to_string(pid)));
    added = found_->cgroups.add(pid, CgroupSet::Unified::already_inside);
  }
  const State& state = found_->state;
  if (!added.ok() && added.error().kind == Kind::denied && !state.systemd_unit.empty()) {
    added = attach_to_scope(state.systemd_unit, state.systemd_user, pid);
  }
  TRY_CTX(std::move(added), "cannot join the cgroup");
  ignore(child_.channel.send(Message::cgroup_joined, {}, pid));  // as in send_confined()
  send_confined(child_.channel, filter);
  return {};
}

// Ends when the child has closed its end by executing the program.
Result<void> Executor::attend() {
  while (true) {
    std::optional<Channel::Incoming> incoming = TRY(child_.receive());
    if (!incoming) return {};
    switch (incoming->report.message) {
      case Message::console:
        console_ = std::move(incoming->passed);
        break;
      case Message::listener:
        TRY(pass_listener(*plan::find<plan::LoadSeccomp>(plan_), found_->state, "running", child_,
                          incoming->report.number));
        break;
      case Message::failed:
        report_.stage = incoming->report.stage;
        return to_error(incoming->report);
      default:
        return make_error(Kind::bug, "receive an unexpected message");
    }
  }
}

Result<void> Executor::publish() {
  child_.first_born = sys::Process();
  return give_process(request_, child_.process, console_);
}

}  // namespace

Result<int> exec(const Store& store, const ExecRequest& request, Detach detach, Report& report,
                 Log& log) {
  Executor executor(store, request, report, log);
  TRY(executor.find());
  executor.charge_container();
  TRY(executor.decide(detach));
  TRY(executor.prepare(detach));
  // Signals are caught before the clone, so that none is lost.
  sys::Fd signals = detach == Detach::no ? TRY(catch_signals()) : sys::Fd();
  TRY(executor.spawn());
  TRY(place_and_attend(
      executor.child(), [&] { return executor.place(); }, [&] { return executor.attend(); }));
  TRY(executor.publish());
  report.fd.reset();
  sys::Process& process = executor.child().process;
  if (detach == Detach::yes) {
    process.release();
    return 0;
  }
  sys::ExitStatus status = TRY(stay(process, signals, executor.take_console()));
  return status.shell_code();
}

}  // namespace berth::runtime
