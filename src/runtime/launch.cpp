// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "runtime/cgroup/scope.hpp"
#include "runtime/child/apply.hpp"
#include "runtime/child/child.hpp"
#include "runtime/child/early_mounts.hpp"
#include "runtime/child/loader_files.hpp"
#include "runtime/child/namespaces.hpp"
#include "runtime/engine_scope.hpp"
#include "runtime/state/bundle.hpp"
#include "runtime/state/find.hpp"
#include "runtime/state/hooks.hpp"
#include "runtime/state/id_maps.hpp"
#include "runtime/state/loader_state.hpp"
#include "runtime/state/net_devices.hpp"
#include "runtime/state/resctrl.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/host_facts.hpp"
#include "sys/net/socket.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

// RFC 3339 in UTC; made without gmtime(3), which would read the machine's time zone file.
std::string now() {
  using namespace std::chrono;
  auto time = system_clock::now();
  auto day = floor<days>(time);
  year_month_day date(day);
  hh_mm_ss clock(floor<nanoseconds>(time - day));
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%09ldZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<long>(clock.subseconds().count()));
  return text.data();
}

std::string root_of(const Bundle& bundle) {
  const std::string& path = bundle.spec.root.path;
  return path.starts_with("/") ? path : bundle.path + "/" + path;
}

/// The elements that were appended to a list after it had `before` elements.
template <class T>
std::vector<T> added(const std::vector<T>& list, size_t before) {
  return {list.begin() + static_cast<std::ptrdiff_t>(std::min(before, list.size())), list.end()};
}

/// Reads the bundle and calls LaunchRequest::amend; records the additions in `state` as well.
Result<Bundle> read_amended(const LaunchRequest& request, State& state) {
  Bundle bundle = TRY_CTX(read_bundle(request.bundle, request.config),
                          "cannot read bundle " + quote(request.bundle));
  if (!request.amend) return bundle;
  oci::Spec& spec = bundle.spec;
  size_t rules = spec.linux_.resources ? spec.linux_.resources->devices.size() : 0;
  size_t gids = spec.process ? spec.process->user.additional_gids.size() : 0;
  TRY(request.amend(spec, bundle.path, root_of(bundle)));
  if (spec.linux_.resources) state.added_devices = added(spec.linux_.resources->devices, rules);
  if (spec.process) state.added_gids = added(spec.process->user.additional_gids, gids);
  return bundle;
}

Result<plan::Plan> make_plan(const Bundle& bundle, const LaunchRequest& request) {
  plan::Container container{request.id, bundle.path, request.await_start};
  container.of_engine = request.of_engine;
  container.new_keyring = !request.no_new_keyring;
  container.make_cgroup = request.cgroup_manager != CgroupManager::disabled;
  if (request.cgroup_manager == CgroupManager::systemd) {
    bool root = sys::in_initial_user_namespace() && sys::effective_uid() == 0;
    container.systemd = root ? plan::SystemdManager::system : plan::SystemdManager::user;
  }
  if (request.of_engine && request.cgroup_manager == CgroupManager::cgroupfs) {
    container.scope = TRY_CTX(scope_for(bundle.spec), "cannot make the systemd scope");
  }
  return plan::make(bundle.spec, container, host_facts(bundle.spec));
}

Result<void> map_ids(const plan::Plan& plan, const plan::Spawn& spawn, pid_t pid,
                     const Channel& channel) {
  if (spawn.uid_mappings.empty()) return {};
  TRY(write_id_maps(pid, spawn.uid_mappings, spawn.gid_mappings));
  if (plan::find<plan::EnterTimeNamespace>(plan) == nullptr) {
    return channel.send(Message::ids_mapped);
  }
  // A non-dumpable process cannot open this file itself.
  std::string path = "/proc/" + std::to_string(pid) + "/timens_offsets";
  sys::Fd offsets = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  return channel.send(Message::ids_mapped, {}, 0, offsets);
}

// Until it executes the container's program, the child has the host's root. Through its namespaces
// other processes have rights over it: root of a joined user namespace, or root without
// capabilities, which owns each new namespace (CVE-2016-9962). So we become non-dumpable, and the
// child inherits that. Not if an ordinary user maps ids: only root can map the ids of a
// non-dumpable process, and only processes of the same user could trace this one.
Result<void> forbid_ptrace(const plan::Spawn& spawn) {
  bool maps = !spawn.uid_mappings.empty();
  return maps && sys::effective_uid() != 0 ? Result<void>() : sys::forbid_tracing();
}

/// Performs one launch; the order of the steps is in launch().
class Launcher {
 public:
  Launcher(const Store& store, const LaunchRequest& request, Report& report, Log& log)
      : store_(store), request_(request), report_(report), log_(log) {}

  Result<void> decide();
  Result<void> claim();
  Result<void> prepare();
  Result<void> make_cgroup();
  Result<void> spawn();
  Result<void> place();
  Result<void> attend();
  Result<void> revive(Reviver& reviver);
  Result<void> publish();
  Launched finish();
  const Child& child() const { return child_; }

 private:
  Result<void> restrict_devices(const plan::MakeCgroup& step);
  CgroupSet::Which wanted_cgroups() const;
  Result<void> give_cgroup(const plan::MakeCgroup& step);
  Result<void> join_cgroup();
  Result<void> enter_scope(const plan::MakeCgroup& step, StartedScope started);
  Result<void> go_without(const plan::MakeCgroup& step, const Error& refusal);
  Unmet strictness() const { return unmet_limits(launched_.state); }
  Result<void> record_process();
  Result<void> confine();
  Result<void> filter_devices();
  Result<void> run_stage(const std::string& stage);
  Result<void> answer_hooks(const std::string& stage);
  const plan::Spawn& spawn_step() const { return *plan::find<plan::Spawn>(launched_.plan); }

  const Store& store_;
  const LaunchRequest& request_;
  Report& report_;
  Log& log_;
  Launched launched_;
  Prepared prepared_;
  CgroupLayout layout_;
  bool devices_by_filter_ = false;
  Child child_;
  Rollback undo_;
};

Result<void> Launcher::decide() {
  State& state = launched_.state;
  Bundle bundle = TRY(read_amended(request_, state));
  launched_.plan = TRY(make_plan(bundle, request_));
  bool terminal = bundle.spec.process && bundle.spec.process->terminal;
  TRY(check_console(terminal, request_.detach, request_.console_socket));
  for (const auto& warning : launched_.plan.warnings) log_.warn(warning);
  if (log_.is_debug()) {
    for (const auto& step : launched_.plan.steps) log_.debug("step: " + describe(step).text);
  }
  state.id = request_.id;
  state.bundle = bundle.path;
  state.of_engine = request_.of_engine;
  state.config = request_.config;
  state.rootfs = root_of(bundle);
  state.created = now();
  state.owner = ::getuid();
  state.boot_id = TRY(sys::boot_id());
  state.annotations = std::move(bundle.spec.annotations);
  state.hooks.poststart = std::move(bundle.spec.hooks.poststart);
  state.hooks.poststop = std::move(bundle.spec.hooks.poststop);
  state.loader_files = leaves_loader_files(launched_.plan);
  if (const auto* cgroup = plan::find<plan::MakeCgroup>(launched_.plan)) {
    state.cgroup_path = cgroup->path;
    if (cgroup->below_caller) state.cgroup_starts = own_cgroups(TRY(detect_cgroup_layout()));
  }
  return request_.decided ? request_.decided() : Result<void>();
}

// Done before the cgroup exists: if we are killed, the state directory is needed to find what is
// left.
Result<void> Launcher::claim() {
  launched_.entry = std::make_unique<Entry>(TRY(store_.claim(request_.id)));
  undo_.add([this] { ignore(store_.remove(request_.id)); });
  return launched_.entry->write(launched_.state);
}

Result<void> Launcher::prepare() {
  prepared_.id = request_.id;
  prepared_.bundle = launched_.state.bundle;
  prepared_.activation = request_.activation;
  prepared_.preserve_fds = request_.activation.count + request_.preserve_fds;
  prepared_.rights_fd = request_.rights_fd;
  prepared_.die_with_parent = request_.detach == Detach::no;
  prepared_.no_pivot = request_.no_pivot;
  prepared_.images = TRY(mount_layer_images(launched_.plan));
  prepared_.served_root = TRY(mount_served_root(launched_.plan, prepared_.images));
  prepared_.data_images = TRY(mount_data_images(launched_.plan));
  prepared_.early_mounts = TRY(make_early_mounts(launched_.plan));
  if (changes_user_namespace(spawn_step()) && sys::effective_uid() == 0) {
    prepared_.held_sources = hold_sources(launched_.plan);
  }
  undo_.add([this] { ignore(remove_loader_files(store_, launched_.state)); });
  TRY(make_loader_files(launched_.plan, launched_.entry->fd(), prepared_));
  TRY(prepare_filter(launched_.plan, prepared_));
  if (!request_.await_start) return {};
  // The path goes through the directory's handle, because a socket's address has at most 107 bytes.
  std::string path = sys::fd_path(launched_.entry->fd()) + "/" + kStartSocket;
  prepared_.start_socket = TRY(sys::listen_unix(path, sys::SocketType::messages));
  return {};
}

Result<void> Launcher::make_cgroup() {
  const auto* step = plan::find<plan::MakeCgroup>(launched_.plan);
  if (step == nullptr) return {};
  layout_ = TRY(cgroup_layout_of(launched_.state));
  if (step->scope) {
    prepared_.scope_layout = layout_;
    return {};  // systemd makes the scope later, when the process exists
  }
  launched_.cgroups =
      TRY_CTX(CgroupSet::create(layout_, step->path, step->resources, wanted_cgroups()),
              "cannot make the cgroup");
  undo_.add([this] { ignore(launched_.cgroups.remove()); });
  devices_by_filter_ = launched_.cgroups.unified_fd() >= 0 && sys::in_initial_user_namespace();
  // Otherwise the rules need a v1 directory, into which the process has to be moved.
  if (!devices_by_filter_) TRY(restrict_devices(*step));
  for (const auto& unmet : launched_.cgroups.unmet()) {
    TRY(refuse_or_warn(unmet, strictness(), log_));
  }
  TRY(give_cgroup(*step));
  prepared_.cgroups = cgroup_views(layout_, launched_.cgroups);
  return {};
}

CgroupSet::Which Launcher::wanted_cgroups() const {
  const auto* shown = plan::find<plan::MountCgroups>(launched_.plan);
  // A batch system searches the job's own freezer for processes, and not the cgroups below it.
  bool is_of_job = plan::find<plan::MakeCgroup>(launched_.plan)->below_caller;
  if (shown == nullptr || shown->unified || is_of_job) return CgroupSet::Which::needed;
  const auto* scheduler = plan::find<plan::SetScheduler>(launched_.plan);
  bool is_real_time =
      scheduler != nullptr && (scheduler->policy == SCHED_FIFO || scheduler->policy == SCHED_RR);
  return is_real_time ? CgroupSet::Which::without_cpu : CgroupSet::Which::all;
}

Result<void> Launcher::give_cgroup(const plan::MakeCgroup& step) {
  if (!step.owner) return {};
  TRY_CTX(launched_.cgroups.give_to(*step.owner), "cannot give the cgroup to the container");
  return {};
}

Result<void> Launcher::restrict_devices(const plan::MakeCgroup& step) {
  auto unmet = TRY_CTX(launched_.cgroups.restrict_devices(layout_, launched_.state.cgroup_path,
                                                          step.resources.devices),
                       "cannot restrict devices");
  return unmet ? refuse_or_warn(*unmet, strictness(), log_) : Result<void>();
}

Result<void> Launcher::spawn() {
  TRY(forbid_ptrace(spawn_step()));
  uint64_t created = joins_user_namespace(spawn_step()) ? 0 : created_namespaces(spawn_step());
  auto make = [&] {
    if (!is_born_into_others(spawn_step())) {
      return make_child(launched_.plan, prepared_, created, launched_.cgroups);
    }
    return make_child_in(launched_.plan, prepared_, spawn_step(), created, launched_.cgroups);
  };
  child_ = TRY(make());
  undo_.add([this] { child_.process = sys::Process(); });
  prepared_.start_socket.reset();
  prepared_.early_mounts.clear();
  prepared_.held_sources.reset();
  prepared_.images.clear();
  prepared_.served_root.reset();
  prepared_.data_images.clear();
  prepared_.loader_cache = StateFile();
  prepared_.loader_path = StateFile();
  prepared_.loader_configuration = StateFile();
  prepared_.loader_original.reset();
  prepared_.loader_made.reset();
  return {};
}

Result<void> Launcher::enter_scope(const plan::MakeCgroup& step, StartedScope started) {
  State& state = launched_.state;
  state.systemd_unit = step.scope->unit;
  state.systemd_user = step.scope->user;
  state.cgroup_path = started.control_group;
  undo_.add([this] {
    child_.process = sys::Process();  // the first process of a pid namespace ignores SIGTERM
    ignore(stop_scope(launched_.state.systemd_unit, launched_.state.systemd_user));
  });
  // The message to the child has a fixed size; a cut path would name another cgroup.
  if (state.cgroup_path.size() >= sizeof ChildReport::text) {
    return make_error(Kind::unsupported, "use cgroup " + quote(state.cgroup_path) + ": too long");
  }
  launched_.cgroups = TRY(CgroupSet::open(layout_, state.cgroup_path));
  // Writes the limits for which systemd has no property, and the others in full precision.
  oci::Resources limits = step.resources;
  limits.devices.clear();
  TRY(launched_.cgroups.update(layout_, state.cgroup_path, limits, [this](const UnmetLimit& unmet) {
    return refuse_or_warn(unmet, strictness(), log_);
  }));
  TRY(give_cgroup(step));
  devices_by_filter_ = !started.declares_devices;
  return {};
}

/// Continues without a cgroup, because the user's systemd has refused to make one. The scope was
/// requested only for limits, which are unmet now.
Result<void> Launcher::go_without(const plan::MakeCgroup& step, const Error& refusal) {
  launched_.state.cgroup_path.clear();
  for (const auto& name : TRY(asked_limits(step.resources))) {
    TRY(refuse_or_warn({name, "the user's systemd makes no cgroup: " + to_line(refusal)},
                       strictness(), log_));
  }
  return {};
}

Result<void> Launcher::join_cgroup() {
  const auto* step = plan::find<plan::MakeCgroup>(launched_.plan);
  if (step != nullptr && step->scope) {
    auto started = start_scope(*step, child_.process.pid(), request_.id);
    bool may_lack = !started.ok() && step->scope->user && !step->path.empty();
    if (may_lack) return go_without(*step, started.error());
    StartedScope scope = TRY_CTX(std::move(started), "cannot make the systemd scope");
    TRY_CTX(enter_scope(*step, std::move(scope)), "cannot make the systemd scope");
    return {};
  }
  TRY_CTX(add_to_cgroups(child_, launched_.cgroups), "cannot join the cgroup");
  return {};
}

/// The child reports the pid of its second process as a number of the child's own pid namespace.
/// Replaces it by the pid in our namespace. A process that has ended has no pid; the next signal to
/// it fails.
void name_by_our_number(sys::Process& process) {
  auto pid = sys::pid_of(process.pidfd());
  if (!pid.ok() || *pid == process.pid()) return;
  auto handle = sys::duplicate(process.pidfd());
  if (!handle.ok()) return;
  process.release();
  process = sys::Process(*pid, std::move(*handle));
}

Result<void> Launcher::place() {
  if (joins_user_namespace(spawn_step())) {
    TRY(await_second_fork(child_));
    if (is_born_into_others(spawn_step())) name_by_our_number(child_.process);
  }
  pid_t pid = child_.process.pid();
  TRY_CTX(map_ids(launched_.plan, spawn_step(), pid, child_.channel), "cannot map ids");
  TRY(join_cgroup());
  TRY(record_process());
  if (const auto* interfaces = plan::find<plan::MoveInterfaces>(launched_.plan)) {
    TRY(move_interfaces(*interfaces, spawn_step(), pid));
  }
  std::string_view scope;
  if (!launched_.state.systemd_unit.empty()) scope = launched_.state.cgroup_path;
  ignore(child_.channel.send(Message::cgroup_joined, scope, pid));  // as in send_confined()
  return confine();
}

Result<void> Launcher::record_process() {
  pid_t pid = child_.process.pid();
  if (const auto* group = plan::find<plan::JoinResctrl>(launched_.plan)) {
    launched_.state.resctrl_group = TRY(join_resctrl(*group, launched_.state.id, pid));
    undo_.add([this] { remove_resctrl(launched_.state.resctrl_group); });
  }
  launched_.state.pid = pid;
  launched_.state.start_time = TRY(sys::process_start_time(pid));
  if (request_.placed) TRY(request_.placed(launched_.state));
  return launched_.entry->write(launched_.state);
}

// Makes what the child needs only in its last steps, while the child mounts.
Result<void> Launcher::confine() {
  TRY(filter_devices());
  send_confined(child_.channel, TRY(write_filter(launched_.plan, prepared_)));
  return {};
}

Result<void> Launcher::filter_devices() {
  const auto* cgroup = plan::find<plan::MakeCgroup>(launched_.plan);
  if (cgroup != nullptr && devices_by_filter_) {
    size_t joined = launched_.cgroups.paths().size();
    TRY(restrict_devices(*cgroup));
    // This kernel has no device filters: the v1 hierarchy was joined instead.
    if (launched_.cgroups.paths().size() != joined) {
      TRY(launched_.cgroups.add(child_.process.pid(), CgroupSet::Unified::already_inside));
    }
  }
  return {};
}

Result<void> Launcher::run_stage(const std::string& stage) {
  for (const auto& step : launched_.plan.steps) {
    const auto* hooks = std::get_if<plan::RunHooks>(&step);
    if (hooks == nullptr || hooks->stage != stage) continue;
    TRY(run_hooks(stage, hooks->hooks, public_state(launched_.state, "creating"),
                  place_on_host(launched_.state)));
  }
  return {};
}

Result<void> Launcher::answer_hooks(const std::string& stage) {
  TRY(run_stage(stage));
  return child_.channel.send(Message::hooks_done);
}

Result<void> Launcher::revive(Reviver& reviver) {
  child_ = TRY(reviver.prepare(launched_, launched_.cgroups.unified_fd()));
  undo_.add([this] {
    child_.process = sys::Process();
    // Without a pid namespace the other processes do not end with the first one.
    if (!launched_.cgroups.empty()) ignore(launched_.cgroups.kill_all());
  });
  TRY(join_cgroup());
  TRY(filter_devices());
  child_.process = TRY(reviver.revive(child_, launched_));
  TRY(record_process());
  for (const char* stage : {"prestart", "createRuntime"}) TRY(run_stage(stage));
  return reviver.resume(child_.process, launched_);
}

// Ends when the child waits for `start`, or has closed its end by executing the program.
Result<void> Launcher::attend() {
  while (true) {
    std::optional<Channel::Incoming> incoming = TRY(child_.receive());
    if (!incoming && request_.await_start) {
      return make_error(Kind::interrupted, "make the container: its first process was killed");
    }
    if (!incoming) return {};
    switch (incoming->report.message) {
      case Message::console:
        launched_.console = std::move(incoming->passed);
        break;
      case Message::hooks_due:
        TRY(answer_hooks(incoming->report.text));
        break;
      case Message::listener:
        TRY(pass_listener(*plan::find<plan::LoadSeccomp>(launched_.plan), launched_.state,
                          "creating", child_, incoming->report.number));
        break;
      case Message::ready:
        return {};
      case Message::failed:
        report_.stage = incoming->report.stage;
        return to_error(incoming->report);
      default:
        return make_error(Kind::bug, "receive an unexpected message");
    }
  }
}

Result<void> Launcher::publish() {
  TRY(give_process(request_, child_.process, launched_.console));
  if (!request_.await_start) {
    TRY(run_hooks("poststart", launched_.state.hooks.poststart,
                  public_state(launched_.state, "running"), place_on_host(launched_.state)));
  }
  return {};
}

Launched Launcher::finish() {
  undo_.commit();
  launched_.process = std::move(child_.process);
  return std::move(launched_);
}

}  // namespace

plan::HostFacts host_facts(const oci::Spec& spec) {
  plan::HostFacts facts;
  const auto& process = spec.process;
  // Probed only if the config needs it.
  facts.apparmor = process && !process->apparmor_profile.empty() && sys::has_apparmor();
  bool labelled = !spec.linux_.mount_label.empty() || (process && !process->selinux_label.empty());
  facts.selinux = labelled && sys::has_selinux();
  facts.resctrl = spec.linux_.intel_rdt && sys::has_resctrl();
  facts.user_namespace = !sys::in_initial_user_namespace();
  facts.tty_group_mapped = !facts.user_namespace || sys::is_group_mapped(5);
  facts.has_cgroups = sys::has_cgroups();
  return facts;
}

Result<void> give_process(const ProcessTakers& takers, const sys::Process& process,
                          sys::Fd& console) {
  // The string that is sent with the descriptor is the same as in runc.
  if (console && !takers.console_socket.empty()) {
    TRY(hand_over(takers.console_socket, console, "/dev/ptmx"));
    console.reset();
  }
  if (!takers.pidfd_socket.empty()) {
    TRY(hand_over(takers.pidfd_socket, process.pidfd(), "pidfd"));
  }
  if (takers.pid_file.empty()) return {};
  return sys::replace_file(sys::cwd(), takers.pid_file, std::to_string(process.pid()), 0644);
}

Result<void> check_console(bool terminal, Detach detach, const std::string& socket) {
  bool handed_over = terminal && detach == Detach::yes;
  if (handed_over && socket.empty()) {
    return make_error(Kind::usage,
                      "cannot allocate tty if it will detach without setting console socket",
                      "--console-socket PATH");
  }
  if (!handed_over && !socket.empty()) {
    return make_error(Kind::usage,
                      "cannot use console socket if it will not detach or allocate tty");
  }
  return {};
}

Result<plan::Plan> plan_bundle(const LaunchRequest& request) {
  State state;
  Bundle bundle = TRY(read_amended(request, state));
  return make_plan(bundle, request);
}

Result<Launched> launch(const Store& store, const LaunchRequest& request, Report& report,
                        Log& log) {
  Launcher launcher(store, request, report, log);
  TRY(launcher.decide());
  TRY(launcher.claim());
  TRY(launcher.prepare());
  TRY(launcher.make_cgroup());
  TRY(launcher.spawn());
  TRY(place_and_attend(
      launcher.child(), [&] { return launcher.place(); }, [&] { return launcher.attend(); }));
  TRY(launcher.publish());
  return launcher.finish();
}

Result<Launched> relaunch(const Store& store, const LaunchRequest& request, Reviver& reviver,
                          Report& report, Log& log) {
  Launcher launcher(store, request, report, log);
  TRY(launcher.decide());
  TRY(launcher.claim());
  TRY(launcher.make_cgroup());
  TRY(launcher.revive(reviver));
  TRY(launcher.publish());
  return launcher.finish();
}

Result<void> dispose(const Store& store, const State& state, CgroupSet cgroups, Log& log) {
  auto stopped = state.systemd_unit.empty() ? Result<void>()
                                            : stop_scope(state.systemd_unit, state.systemd_user);
  auto removed = cgroups.remove();
  remove_resctrl(state.resctrl_group);
  // Processes that could not be killed keep their GPUs.
  if (!state.gpu_lease.empty() && removed.ok()) {
    ignore(sys::remove_entry(sys::cwd(), state.gpu_lease));
  }
  // The caller may be removing the bundle already.
  HookPlace place = place_on_host(state);
  place.directory = "/";
  run_all_hooks("poststop", state.hooks.poststop, public_state(state, "stopped"), place, log);
  auto cleaned = remove_loader_files(store, state);
  if (!cleaned.ok()) log.warn(to_line(cleaned.error()) + ", ignoring");
  TRY(store.remove(state.id));
  return stopped.ok() ? removed : stopped;
}

}  // namespace berth::runtime
