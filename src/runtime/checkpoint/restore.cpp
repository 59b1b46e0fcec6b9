// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/restore.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/checkpoint/criu.hpp"
#include "runtime/child/mounts.hpp"
#include "runtime/container.hpp"
#include "runtime/foreground.hpp"
#include "runtime/mount/target.hpp"
#include "runtime/state/find.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/mount.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/program.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

constexpr const char* kPidFile = "restored.pid";
constexpr size_t kMaxRestoreDocument = size_t{1} << 20;

void append_restore(std::vector<std::string>& words, std::vector<std::string> more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

/// Reads a file that checkpoint wrote next to the images; images of other runtimes lack it.
Result<std::vector<std::string>> read_list(const std::string& directory, const char* name) {
  auto text =
      TRY(sys::read_file_if_exists(sys::cwd(), directory + "/" + name, kMaxRestoreDocument));
  if (!text) return std::vector<std::string>();
  return json::read<std::vector<std::string>>(*text, name);
}

bool is_tmpfs_at_or_above(const plan::Plan& plan, const std::string& path) {
  return std::ranges::any_of(plan.steps, [&](const plan::Step& step) {
    const auto* mount = std::get_if<plan::MountFilesystem>(&step);
    return mount != nullptr && mount->type == "tmpfs" && path != mount->target &&
           is_below(path, mount->target);
  });
}

/// The root file system in the form that criu needs, in a mount namespace that ends with criu: it
/// is a mount of its own and has all mount points.
class Root {
 public:
  static Result<Root> make(const std::string& rootfs, const plan::Plan& plan,
                           const CgroupStarts& starts, const std::string& cgroup) {
    Root root;
    sys::Fd directory = TRY(sys::open_at(sys::cwd(), rootfs, O_PATH | O_DIRECTORY));
    root.path_ = TRY(sys::read_link(sys::cwd(), sys::fd_path(directory)));
    TRY(sys::unshare(CLONE_NEWNS, "mount namespace"));
    TRY(isolate_mounts());
    TRY(sys::mount(root.path_, root.path_, "", MS_BIND | MS_REC, ""));
    root.fd_ = TRY(sys::open_at(sys::cwd(), root.path_, O_PATH | O_DIRECTORY));
    for (const auto& step : plan.steps) TRY(root.add(step, plan));
    TRY(root.add_cgroups(plan, starts, cgroup));
    return root;
  }

  const std::string& path() const { return path_; }

  /// The host's file for the container's path `key`, at which the config mounts nothing. It is
  /// below the source of the mount that contains it, or in the root. A process that can write there
  /// may have replaced it by a link, but the link cannot lead out of that source or root.
  Result<sys::Fd> find(const std::string& key) const {
    const std::pair<const std::string, std::string>* nearest = nullptr;
    for (const auto& entry : sources_) {  // sorted, so a longer path comes later
      if (is_below(key, entry.first)) nearest = &entry;
    }
    const std::string& around = nearest == nullptr ? path_ : nearest->second;
    sys::Fd base = TRY(sys::open_at(sys::cwd(), around, O_PATH));
    return sys::open_in_root(base, nearest == nullptr ? key : key.substr(nearest->first.size()),
                             O_PATH);
  }
  const std::map<std::string, std::string>& sources() const { return sources_; }

 private:
  // Adds the container's cgroup directories: criu restores cgroup mounts that are slaves of the
  // host's mounts as bind mounts of these directories.
  Result<void> add_cgroups(const plan::Plan& plan, const CgroupStarts& starts,
                           const std::string& cgroup) {
    const auto* mount = plan::find<plan::MountCgroups>(plan);
    if (mount == nullptr || cgroup.empty()) return {};
    CgroupLayout layout = TRY(detect_cgroup_layout());
    begin_at(starts, layout);
    CgroupSet cgroups = TRY(CgroupSet::open(layout, cgroup));
    for (const auto& [directory, name, links] : cgroup_views(layout, cgroups)) {
      sources_[name.empty() ? mount->target : mount->target + "/" + name] = directory;
    }
    return {};
  }
  Result<void> add(const plan::Step& step, const plan::Plan& plan) {
    if (const auto* bind = std::get_if<plan::MountBind>(&step)) {
      return add(bind->source, bind->target, plan);
    }
    if (const auto* node = std::get_if<plan::BindNode>(&step)) {
      return add(node->source, node->path, plan);
    }
    const auto* mount = std::get_if<plan::MountFilesystem>(&step);
    // The content of a tmpfs is restored together with the tmpfs.
    if (mount == nullptr || is_tmpfs_at_or_above(plan, mount->target)) return {};
    TRY(open_target(fd_, mount->target, TargetType::directory));
    return {};
  }
  Result<void> add(const std::string& source, const std::string& target, const plan::Plan& plan) {
    if (is_tmpfs_at_or_above(plan, target)) {
      sources_[target] = source;
      return {};
    }
    sys::Fd shown = TRY(sys::open_at(sys::cwd(), source, O_PATH));
    struct stat info = TRY(sys::stat_fd(shown, source));
    sys::Fd place = TRY(
        open_target(fd_, target, S_ISDIR(info.st_mode) ? TargetType::directory : TargetType::file));
    // The images have mount points without links, so the links in `target` are resolved.
    std::string found = TRY(sys::read_link(sys::cwd(), sys::fd_path(place)));
    if (!is_below(found, path_)) {
      return make_error(Kind::denied, quote(target) + " leads out of the root file system");
    }
    sources_[path_ == "/" ? found : found.substr(path_.size())] = source;
    return {};
  }

  std::string path_;
  sys::Fd fd_;
  std::map<std::string, std::string> sources_;  ///< by the path in the container
};

/// Mounts for criu, which finds them by path. They are in a directory that no other process can
/// change, and end with criu's mount namespace.
class Views {
 public:
  /// Hides the content of `directory`, which other processes cannot rename. Uses its path, since
  /// the handle may belong to another mount namespace.
  static Result<Views> make(const sys::Fd& directory) {
    Views views;
    views.path_ = TRY(sys::read_link(sys::cwd(), sys::fd_path(directory)));
    TRY(sys::mount("tmpfs", views.path_, "tmpfs", 0, "mode=0700"));
    views.directory_ = TRY(sys::open_at(sys::cwd(), views.path_, O_PATH | O_DIRECTORY));
    return views;
  }

  /// Makes a mount of `shown`, with everything mounted in it, and returns its path.
  Result<std::string> add(const sys::Fd& shown) {
    std::string name = std::to_string(count_++);
    struct stat info = TRY(sys::stat_fd(shown, name));
    if (S_ISDIR(info.st_mode)) {
      TRY(sys::make_directory(directory_, name, 0700));
    } else {
      TRY(sys::open_at(directory_, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    }
    sys::Fd place = TRY(sys::open_at(directory_, name, O_PATH | O_NOFOLLOW));
    TRY(sys::mount(sys::fd_path(shown), sys::fd_path(place), "", MS_BIND | MS_REC, ""));
    return path_ + "/" + name;
  }

 private:
  std::string path_;
  sys::Fd directory_;
  size_t count_ = 0;
};

/// criu and its arguments. The arguments that need the mounts of the root are made in the child.
class CriuRestore final : public Reviver {
 public:
  CriuRestore(const RestoreRequest& request, Detach detach) : request_(request), detach_(detach) {}

  /// Reads the images; called before anything is made.
  Result<void> read();

  Result<Child> prepare(const Launched& launched, int cgroup) override;
  Result<sys::Process> revive(Child& child, const Launched& launched) override;
  Result<void> resume(const sys::Process& process, const Launched& launched) override;

 private:
  Error become_criu(const Channel& channel, const Launched& launched);
  Result<void> add_cgroups();
  Result<void> add_namespaces(const plan::Plan& plan);
  Result<void> add_mounts(const Root& root, const sys::Fd& own);
  void add_streams();
  Result<void> check_alive(pid_t pid) const;

  const RestoreRequest& request_;
  Detach detach_;
  bool leave_stopped_ = false;
  CriuDirectories directories_;
  std::vector<std::string> descriptors_;
  std::vector<std::string> mounts_;
  std::vector<std::string> words_;
  std::vector<sys::Fd> spaces_;  ///< handles of namespaces, which criu inherits
};

Result<void> CriuRestore::read() {
  LaunchRequest request = request_.launch;
  plan::Plan plan = TRY(plan_bundle(request));
  TRY(check_restorable(plan));
  std::string program = TRY(find_criu());
  directories_ = TRY_CTX(open_criu_directories(request_.criu, MakeImages::no),
                         "cannot open the images' directory");
  descriptors_ = TRY(read_list(directories_.images, kDescriptorsFile));
  mounts_ = TRY(read_list(directories_.images, kOutsideMountsFile));
  for (const auto& key : mounts_) {
    auto parts = split(key, '/');
    bool climbs = std::ranges::find(parts, "..") != parts.end();
    if (key.starts_with("/") && !climbs) continue;
    return make_error(Kind::corrupt, std::string(kOutsideMountsFile) + ": " + quote(key) +
                                         " is not a mount point");
  }
  words_ = criu_command(program, "restore", directories_, request_.criu);
  append_restore(words_, {"--restore-detached", "--evasive-devices"});
  // Makes the container's process our child, so that we can wait for its end. A detached process
  // gets another parent, which waits for it.
  if (detach_ == Detach::no) words_.emplace_back("--restore-sibling");
  if (!request_.lsm_profile.empty())
    append_restore(words_, {"--lsm-profile", request_.lsm_profile});
  if (!request_.lsm_mount_context.empty()) {
    append_restore(words_, {"--lsm-mount-context", request_.lsm_mount_context});
  }
  for (const auto& step : plan.steps) {
    const auto* hooks = std::get_if<plan::RunHooks>(&step);
    bool early =
        hooks != nullptr && (hooks->stage == "prestart" || hooks->stage == "createRuntime");
    // The processes stay stopped until the hooks have run, because they may need what the hooks set
    // up.
    if (early && !hooks->hooks.empty()) leave_stopped_ = true;
  }
  if (leave_stopped_) words_.emplace_back("--leave-stopped");
  return {};
}

// Puts the container's processes into the cgroup of criu itself, which was moved to the container's
// cgroup for that.
Result<void> CriuRestore::add_cgroups() {
  std::string own = TRY(sys::read_file(sys::cwd(), "/proc/self/cgroup", 65536));
  for (std::string_view line : split(trim(own), '\n')) {
    // "9:cpu,cpuacct:/a", and "0::/a" for v2, which has all controllers that are not named.
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string names(line.substr(first + 1, second - first - 1));
    std::string place(line.substr(second + 1));
    append_restore(
        words_,
        {"--cgroup-root", names.empty() ? place : names.substr(0, names.find(',')) + ":" + place});
  }
  return {};
}

Result<void> CriuRestore::add_namespaces(const plan::Plan& plan) {
  const auto& created = plan::find<plan::Spawn>(plan)->created;
  if (std::ranges::find(created, "network") != created.end()) {
    append_restore(words_, {"--empty-ns", "net"});
  }
  for (const auto& space : TRY(outside_namespaces(plan))) {
    if (space.key.empty()) {
      append_restore(words_, {"--join-ns", space.type + ":" + space.path});
      continue;
    }
    sys::Fd opened = TRY(sys::open_at(sys::cwd(), space.path, O_RDONLY));
    TRY(sys::set_inheritable(opened));
    append_restore(words_,
                   {"--inherit-fd", "fd[" + std::to_string(opened.get()) + "]:" + space.key});
    spaces_.push_back(std::move(opened));
  }
  return {};
}

/// `own`: a directory that belongs to this container.
Result<void> CriuRestore::add_mounts(const Root& root, const sys::Fd& own) {
  auto add = [this](const std::string& key, const std::string& source) {
    append_restore(words_, {"--external", "mnt[" + key + "]:" + source});
  };
  add(kNullKey, kNullKey);
  for (const auto& [place, source] : root.sources()) add(place, source);
  std::optional<Views> views;
  for (const auto& key : mounts_) {
    if (root.sources().contains(key)) continue;
    if (!views) views = TRY(Views::make(own));
    sys::Fd shown = TRY_CTX(root.find(key), "cannot find what was mounted at " + quote(key));
    add(key, TRY(views->add(shown)));
  }
  return {};
}

void CriuRestore::add_streams() {
  for (size_t i = 0; i < descriptors_.size() && i < 3; ++i) {
    const std::string& name = descriptors_[i];
    bool is_ours = name.starts_with("pipe:[") || name.starts_with("file[");
    if (!is_ours || !sys::is_inherited(static_cast<int>(i))) continue;
    append_restore(words_, {"--inherit-fd", "fd[" + std::to_string(i) + "]:" + name});
  }
}

Error CriuRestore::become_criu(const Channel& channel, const Launched& launched) {
  auto prepared = [&]() -> Result<void> {
    sys::reset_signals();
    ChildReport joined = TRY(channel.expect(Message::cgroup_joined));
    const State& state = launched.state;
    Root root = TRY_CTX(Root::make(state.rootfs, launched.plan, state.cgroup_starts, joined.text),
                        "cannot prepare the root file system");
    append_restore(words_, {"--root", root.path()});
    TRY(add_cgroups());
    TRY(add_namespaces(launched.plan));
    TRY(add_mounts(root, launched.entry->fd()));
    add_streams();
    sys::Fd top = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
    return sys::change_directory(top, "/");
  }();
  if (!prepared.ok()) return std::move(prepared).error();
  return sys::execute(words_.front(), words_, criu_environment());
}

Result<Child> CriuRestore::prepare(const Launched& launched, int cgroup) {
  append_restore(words_, {"--pidfile", sys::shared_fd_path(launched.entry->fd()) + "/" + kPidFile});
  auto [ours, theirs] = TRY(sys::socket_pair());
  sys::exchange_null_streams(sys::Fd());
  auto cloned = sys::clone3(0, cgroup);
  bool in_cgroup = cloned.ok() && cgroup >= 0;
  if (!cloned.ok() && cgroup >= 0) cloned = sys::clone3(0, -1);
  sys::Cloned child = TRY(std::move(cloned));
  if (child.pid == 0) {
    ours.reset();
    Channel channel(std::move(theirs));
    // Nothing can be done if sending fails: the parent has ended.
    ignore(channel.send(to_report(become_criu(channel, launched), Stage::engine)));
    ::_exit(1);
  }
  return Child{.process = sys::Process(child.pid, std::move(child.pidfd)),
               .channel = Channel(std::move(ours)),
               .in_cgroup = in_cgroup};
}

// Fails if the kernel kills the restored process at once: a process of a foreground run gets
// SIGKILL when its parent ends, and criu restores that setting too.
Result<void> CriuRestore::check_alive(pid_t pid) const {
  auto status = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/status", 65536);
  bool dies = !status.ok();
  for (std::string_view line :
       status.ok() ? split(*status, '\n') : std::vector<std::string_view>()) {
    if (line.starts_with("State:")) dies = dies || line.find("(zombie)") != std::string_view::npos;
    if (!line.starts_with("ShdPnd:")) continue;
    // Sixteen hexadecimal digits; SIGKILL is bit 8, the lowest bit of the third digit from the end.
    std::string_view digits = trim(line.substr(7));
    if (digits.size() < 3) continue;
    char third = digits[digits.size() - 3];
    dies = dies || std::string_view("13579bdf").find(third) != std::string_view::npos;
  }
  if (!dies) return {};
  return make_error(Kind::interrupted,
                    "restore the container: its first process has ended with criu; a container "
                    "that ran in the foreground ends with the process that restores it",
                    "berth-runtime restore without --detach");
}

Result<sys::Process> CriuRestore::revive(Child& child, const Launched& launched) {
  TRY(child.channel.send(Message::cgroup_joined, launched.state.cgroup_path));
  auto incoming = TRY(child.channel.receive());
  if (incoming) return to_error(incoming->report);
  sys::ExitStatus status = TRY(child.process.wait());
  if (status.shell_code() != 0) return criu_error(directories_, "restore", status, "");
  const sys::Fd& directory = launched.entry->fd();
  std::string number = TRY(sys::read_file(directory, kPidFile, 64));
  TRY(sys::remove_entry(directory, kPidFile));
  auto pid = parse_i64(trim(number));
  if (!pid) return make_error(Kind::io, "read the process id that criu wrote");
  if (detach_ == Detach::yes) TRY(check_alive(static_cast<pid_t>(*pid)));
  sys::Fd pidfd = TRY(sys::open_pidfd(static_cast<pid_t>(*pid)));
  return sys::Process(static_cast<pid_t>(*pid), std::move(pidfd));
}

Result<void> CriuRestore::resume(const sys::Process& process, const Launched& launched) {
  if (!leave_stopped_) return {};
  return launched.cgroups.empty() ? process.signal(SIGCONT) : launched.cgroups.signal_all(SIGCONT);
}

}  // namespace

Result<int> restore(const Store& store, RestoreRequest request, Detach detach, Report& report,
                    Log& log) {
  request.launch.detach = detach;
  request.launch.await_start = true;  // no poststart hooks: they have run before
  CriuRestore criu(request, detach);
  TRY(criu.read());
  // Signals are caught before the clone, so that none is lost.
  sys::Fd signals = detach == Detach::no ? TRY(catch_signals()) : sys::Fd();
  Launched launched = TRY(relaunch(store, request.launch, criu, report, log));
  if (detach == Detach::yes) {
    launched.process.release();
    return 0;
  }
  auto status = stay(launched.process, signals, {});
  launched.process = sys::Process();
  auto disposed = dispose(store, launched.state, std::move(launched.cgroups), log);
  sys::ExitStatus ended = TRY(std::move(status));
  if (!disposed.ok()) log.warn(to_line(disposed.error()) + "; ignoring");
  return ended.shell_code();
}

}  // namespace berth::runtime
