// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/control.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/text.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"
#include "sys/mount/mount.hpp"
#include "sys/process/adopt.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"
#include "sys/user/credentials.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kMpsLogs = "/tmp/nvidia-log";
constexpr const char* kMpsFiles = "/tmp/nvidia-driver";
/// A daemon uses no GPU while it starts; only its servers do, later.
constexpr auto kStartPatience = 10s;
constexpr auto kAskPatience = 5s;
constexpr auto kEndPatience = 5s;
constexpr auto kControlPause = 20ms;
constexpr size_t kMostLog = size_t{64} << 10;
constexpr size_t kMostEnvironment = size_t{256} << 10;
constexpr const char* kDaemonLog = "daemon.log";

std::string last_line(std::string_view text) {
  constexpr size_t kMostLine = 200;
  return escape_controls(std::string(trim(split(trim(text), '\n').back()).substr(0, kMostLine)));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

bool bears(const std::string& pid, const std::string& entry) {
  auto text = sys::read_file_if_exists(sys::cwd(), "/proc/" + pid + "/environ", kMostEnvironment);
  if (!text.ok() || !*text) return false;
  auto entries = split(**text, '\0');
  return std::ranges::find(entries, entry) != entries.end();
}

Result<void> clear_directory(const std::string& directory) {
  for (const std::string& name : TRY(sys::list_directory(sys::cwd(), directory))) {
    TRY(sys::remove_tree(sys::cwd(), directory + "/" + name));
  }
  return {};
}

Result<void> bind_to(const sys::Fd& directory, const std::string& place) {
  return sys::mount(sys::fd_path(directory), place, "", MS_BIND, "");
}

struct OpenFile {
  const MpsFile* file = nullptr;
  sys::Fd fd{};  ///< of a file that the tmpfs hides
};

Result<std::vector<OpenFile>> open_hidden(const std::vector<MpsFile>& files) {
  std::vector<OpenFile> opened;
  for (const MpsFile& file : files) {
    OpenFile& one = opened.emplace_back(OpenFile{&file});
    if (is_below(file.path, "/tmp")) one.fd = TRY(sys::open_at(sys::cwd(), file.path, O_PATH));
  }
  return opened;
}

/// Makes the driver's files visible by their names: the machine's loader does not find libraries of
/// another root, and links in that root may lead to files of the machine.
Result<void> show_files(const std::vector<OpenFile>& files) {
  TRY(sys::make_directory(sys::cwd(), kMpsFiles, 0755));
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), kMpsFiles, O_RDONLY | O_DIRECTORY));
  TRY(sys::change_mode(directory, 0755, kMpsFiles));  // our umask may say 077
  for (const OpenFile& one : files) {
    if (one.file->name.find('/') != std::string::npos) continue;
    const std::string place = std::string(kMpsFiles) + "/" + one.file->name;
    if (one.fd) {
      TRY(sys::write_file(sys::cwd(), place, "", 0644));
      TRY(bind_to(one.fd, place));
    } else {
      TRY(sys::make_symlink(one.file->path, sys::cwd(), place));
    }
  }
  return {};
}

Result<void> make_view(const MpsPlace& place) {
  MpsOrder order = TRY(read_order(place));
  TRY(sys::leave_mount_namespace());
  // Opened before a tmpfs hides the machine's /tmp: these directories may be below it.
  sys::Fd pipes = TRY(sys::open_at(sys::cwd(), place.daemon, O_PATH | O_DIRECTORY));
  sys::Fd memory = TRY(sys::open_at(sys::cwd(), place.memory, O_PATH | O_DIRECTORY));
  sys::Fd logs = TRY(sys::open_at(sys::cwd(), place.logs, O_PATH | O_DIRECTORY));
  std::vector<OpenFile> files = TRY(open_hidden(order.files));
  TRY(bind_to(memory, "/dev/shm"));
  TRY(sys::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=64m"));
  TRY(sys::make_directory(sys::cwd(), kMpsPipes, 0755));
  TRY(sys::make_directory(sys::cwd(), kMpsLogs, 0755));
  TRY(show_files(files));
  TRY(bind_to(pipes, kMpsPipes));
  return bind_to(logs, kMpsLogs);
}

/// Repeats until no child is left: orphans of a killed child become our children.
void kill_children() {
  const std::string list = "/proc/thread-self/children";
  const auto end = Clock::now() + kEndPatience;
  while (Clock::now() < end) {
    auto text = sys::read_file(sys::cwd(), list, kMostLog);
    auto pids = text.ok() ? split_blank(*text) : std::vector<std::string_view>();
    if (pids.empty()) return;
    for (std::string_view one : pids) {
      auto pid = parse_u64(one);
      if (pid) ignore(sys::send_signal(static_cast<int>(*pid), SIGKILL));
    }
    std::this_thread::sleep_for(kControlPause);
    sys::reap_others(-1);
  }
}

/// Kills processes that guard_share() missed and that have the share's name in their environment,
/// as far as we may read it. /proc/PID/environ
void kill_share(const std::string& share) {
  const std::string entry = std::string(kMpsShareVariable) + "=" + share;
  auto names = sys::list_directory(sys::cwd(), "/proc");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    auto pid = parse_u64(name);
    if (!pid || !bears(name, entry)) continue;
    auto handle = sys::open_pidfd(static_cast<pid_t>(*pid));
    // The pid may belong to another process now.
    if (!handle.ok() || !bears(name, entry)) continue;
    sys::Process process(static_cast<pid_t>(*pid), std::move(*handle));
    ignore(process.signal(SIGKILL));
    ignore(sys::await_end(process.pidfd(), kEndPatience));
    process.release();  // it is not our child
  }
}

}  // namespace

MpsDaemon::MpsDaemon(std::string self, std::string name, MpsPlace place, const MpsOrder& order)
    : self_(std::move(self)), name_(std::move(name)), place_(std::move(place)), order_(order) {}

sys::SpawnOptions MpsDaemon::words(const char* verb, const std::vector<std::string>& more) const {
  sys::SpawnOptions options;
  options.program = self_;
  options.args = {"berth-mps", verb, place_.directory, order_.control};
  options.args.insert(options.args.end(), more.begin(), more.end());
  const std::string folder = order_.control.substr(0, order_.control.rfind('/'));
  const std::string files = kMpsFiles;
  options.env = {"PATH=" + files + ":" + folder + ":/usr/bin:/bin",
                 std::string(kMpsPipesVariable) + "=" + kMpsPipes,
                 std::string("CUDA_MPS_LOG_DIRECTORY=") + kMpsLogs,
                 "LD_LIBRARY_PATH=" + files,
                 "CUDA_VISIBLE_DEVICES=" + joined(order_.share.gpus),
                 std::string(kMpsShareVariable) + "=" + name_};
  for (std::string& limit : environment_of(order_.share)) options.env->push_back(std::move(limit));
  options.working_directory = "/";
  return options;
}

Error MpsDaemon::died() const {
  auto log = sys::read_file_if_exists(sys::cwd(), place_.logs + "/" + kDaemonLog, kMostLog);
  std::string why = log.ok() && *log ? last_line(**log) : "";
  return make_error(Kind::unsupported,
                    "NVIDIA's MPS daemon ended at once" + (why.empty() ? "" : ": " + why));
}

Result<std::string> MpsDaemon::ask(const std::string& command) const {
  auto answer = TRY(sys::run_command(words("enter", {}), command + "\n", kAskPatience, kMostLog));
  if (answer.status.shell_code() == 0) return std::move(answer.out);
  return make_error(Kind::unsupported, "NVIDIA's MPS daemon: " + command + ": " +
                                           last_line(answer.err + "\n" + answer.out));
}

Result<void> MpsDaemon::send_limits() const {
  for (const std::string& command : commands_of(order_.share)) TRY(ask(command));
  const MpsLimits& limits = order_.share.limits;
  auto refused = [](const std::string& what, const std::string& said) {
    return make_error(Kind::unsupported,
                      "NVIDIA's MPS daemon does not accept the limit of " + what + ", it says " +
                          quote(last_line(said)),
                      "a newer driver, a MIG slice, or leave it out");
  };
  if (limits.cores_percent) {
    std::string said = TRY(ask("get_default_active_thread_percentage"));
    if (!says_percent(said, *limits.cores_percent)) return refused("cores", said);
  }
  for (size_t i = 0; limits.memory_bytes && i < order_.share.gpus.size(); ++i) {
    std::string said = TRY(ask("get_default_device_pinned_mem_limit " + std::to_string(i)));
    if (!says_bytes(said, *limits.memory_bytes >> 20 << 20)) return refused("memory", said);
  }
  return {};
}

// Programs need the socket and the log pipe. Files that can change limits stay hidden.
Result<void> MpsDaemon::show_pipes() const {
  for (const std::string& name : TRY(sys::list_directory(sys::cwd(), place_.daemon))) {
    const std::string path = place_.daemon + "/" + name;
    auto info = TRY(sys::stat_entry(sys::cwd(), path));
    bool needed = info && (S_ISSOCK(info->st_mode) || S_ISFIFO(info->st_mode));
    if (!needed || name.find("privileged") != std::string::npos) continue;
    TRY(sys::make_hard_link(sys::cwd(), path, sys::cwd(), place_.pipes + "/" + name));
  }
  return {};
}

Result<void> MpsDaemon::start() {
  end();
  TRY(clear_directory(place_.pipes));
  TRY(clear_directory(place_.daemon));
  sys::SpawnOptions options = words("guard", {"-f"});
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  sys::Fd log = TRY(sys::open_at(sys::cwd(), place_.logs + "/" + kDaemonLog,
                                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  options.in = &null;
  options.out = options.err = &log;
  process_ = TRY(sys::spawn(options));
  const auto end = Clock::now() + kStartPatience;
  while (true) {
    if (TRY(process_.wait_for(kControlPause))) {
      process_ = sys::Process();
      return died();
    }
    auto socket = TRY(sys::stat_entry(sys::cwd(), place_.daemon + "/control"));
    auto answer = socket ? ask("get_server_list") : Result<std::string>(std::string());
    if (socket && answer.ok()) break;
    if (Clock::now() < end) continue;
    if (!answer.ok()) return std::move(answer).error();
    return make_error(Kind::interrupted, "NVIDIA's MPS daemon does not answer");
  }
  TRY(send_limits());
  return show_pipes();
}

void MpsDaemon::end() {
  if (process_) {
    ignore(process_.signal(SIGTERM));  // the guard ends the daemon and its servers
    auto ended = process_.wait_for(kEndPatience);
    if (!ended.ok() || !*ended) ignore(process_.signal(SIGKILL));
  }
  process_ = sys::Process();
  kill_children();  // the children of a guard that was killed
  kill_share(name_);
}

Result<int> guard_share(const sys::SpawnOptions& options) {
  TRY(sys::become_subreaper());  // a server becomes our child if its daemon is killed
  sys::Fd signals = TRY(sys::receive_signals({SIGTERM, SIGCHLD}));
  TRY(sys::die_with_parent(SIGTERM));
  sys::Process daemon = TRY(sys::spawn(options));
  std::optional<sys::ExitStatus> status;
  while (!status) {
    std::vector<pollfd> entries = {{daemon.pidfd().get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    TRY(sys::poll(entries, std::nullopt));
    while (auto signal = TRY(sys::read_signal(signals))) {
      if (signal->number == SIGTERM) ignore(daemon.signal(SIGKILL));
    }
    sys::reap_others(daemon.pid());
    status = TRY(daemon.wait_for(0ms));
  }
  kill_children();
  return status->shell_code();
}

Error enter_share(const MpsPlace& place, const std::string& program,
                  const std::vector<std::string>& words) {
  auto file = sys::open_at(sys::cwd(), program, O_PATH);
  if (!file.ok()) return std::move(file).error();
  auto made = make_view(place);
  if (!made.ok()) return std::move(made).error();
  std::vector<std::string> args = {program.substr(program.rfind('/') + 1)};
  args.insert(args.end(), words.begin(), words.end());
  std::vector<std::string> env;
  for (char** one = environ; *one != nullptr; ++one) env.emplace_back(*one);
  // argv[0] is the path that ps shows; a path below /tmp is hidden now.
  Error absent = sys::execute(program, args, env);
  if (absent.kind != Kind::not_found) return absent;
  return sys::execute(sys::fd_path(*file), args, env);
}

}  // namespace berth::gpu
