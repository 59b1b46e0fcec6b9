// SPDX-License-Identifier: Apache-2.0
#include "sys/process/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

extern char** environ;

namespace berth::sys {
namespace {

constexpr size_t kChildStack = size_t{64} << 10;
constexpr std::chrono::milliseconds kLook{10};

ExitStatus from_wait_status(int status) {
  if (WIFSIGNALED(status)) return ExitStatus{0, WTERMSIG(status)};
  return ExitStatus{WEXITSTATUS(status), 0};
}

/// Everything that the child needs, made before the clone, because the child shares our memory and
/// must neither allocate nor lock.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* working_directory;
  std::array<int, 3> standard;  // -1: as it is
  const int* keep;
  size_t keep_count;
  int third;  // -1: as it is
  bool die_with_parent;
  bool new_session;
  int failure;  // errno of the step that failed
};

// Replaces descriptors 0–2. First duplicates sources that are themselves one of 0–2.
bool redirect(std::array<int, 3>& standard) {
  for (int& source : standard) {
    if (source >= 0 && source <= 2) {
      int moved = ::fcntl(source, F_DUPFD, 3);
      if (moved < 0) return false;
      source = moved;
    }
  }
  for (int target = 0; target < 3; ++target) {
    int source = standard[static_cast<size_t>(target)];
    if (source >= 0 && ::dup2(source, target) < 0) return false;
  }
  return true;
}

// Sets FD_CLOEXEC on every descriptor from 3 on, except those to keep.
void close_others(const ChildPlan& plan) {
  ::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  for (size_t i = 0; i < plan.keep_count; ++i) ::fcntl(plan.keep[i], F_SETFD, 0);
}

int child_main(void* argument) {
  auto& plan = *static_cast<ChildPlan*>(argument);
  sigset_t none;
  sigemptyset(&none);
  bool ready = (!plan.die_with_parent || ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) &&
               (!plan.new_session || ::setsid() >= 0) && redirect(plan.standard) &&
               (plan.third < 0 || ::dup2(plan.third, 3) == 3) &&
               (plan.working_directory == nullptr || ::chdir(plan.working_directory) == 0);
  if (ready) {
    close_others(plan);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(plan.program, plan.argv, plan.envp);
  }
  plan.failure = errno;
  ::_exit(127);
}

// A file of procfs that one read(2) returns whole.
Result<std::string> read_record(const std::string& path) {
  std::array<char, 4096> buffer;
  Fd fd = TRY(open_at(cwd(), path, O_RDONLY));
  size_t count = TRY(read_some(fd, buffer, path));
  return std::string(buffer.data(), count);
}

/// Source: proc_pid_stat(5)
struct ProcessStat {
  char state = 0;
  uint64_t start_time = 0;  ///< clock ticks since boot
};
Result<ProcessStat> read_process_stat(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::string text = TRY(read_record(path));
  // The second field is the name in parentheses, and the name itself may have blanks and
  // parentheses.
  size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return make_error(Kind::corrupt, "read " + quote(path));
  auto words = split_blank(std::string_view(text).substr(name_end + 1));
  constexpr size_t kStartTime = 22 - 3;  // the list begins with field 3
  auto ticks = words.size() > kStartTime ? parse_u64(words[kStartTime]) : std::nullopt;
  if (!ticks) return make_error(Kind::corrupt, "read " + quote(path));
  return ProcessStat{words[0][0], *ticks};
}

// include/uapi/linux/pidfd.h of Linux 6.15; the first version of the structure, to whose end later
// versions append members.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t ids[11];  // pid, tgid, ppid, and four pairs of user and group
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kInfoExit = 1 << 3;

}  // namespace

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    std::swap(pid_, other.pid_);
    std::swap(pidfd_, other.pidfd_);
  }
  return *this;
}

Process::~Process() {
  if (pid_ <= 0) return;
  ignore(signal(SIGKILL));  // the process may have ended by itself
  ignore(wait());
}

Result<ExitStatus> Process::wait() {
  BERTH_ASSERT(pid_ > 0);
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) < 0) {
    if (errno != EINTR) return errno_now().error("wait for process " + std::to_string(pid_));
  }
  pid_ = -1;
  return from_wait_status(status);
}

Result<std::optional<ExitStatus>> Process::wait_for(std::chrono::milliseconds deadline) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd entry{pidfd_.get(), POLLIN, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return std::optional<ExitStatus>(TRY(wait()));
    if (ready == 0) return std::optional<ExitStatus>();
    if (errno != EINTR) return errno_now().error("wait for process " + std::to_string(pid_));
  }
}

Result<void> Process::signal(int number) const {
  long sent = ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0U);
  // COMPAT(5.1): delete when that is our baseline. The pid may belong to another process now.
  if (sent != 0 && errno == ENOSYS) sent = ::kill(pid_, number);
  if (sent != 0) {
    return errno_now().error("signal process " + std::to_string(pid_));
  }
  return {};
}

pid_t Process::release() {
  pidfd_.reset();
  return std::exchange(pid_, -1);
}

Result<Process> spawn(const SpawnOptions& options) {
  std::vector<char*> argv = arguments(options.args);
  std::vector<char*> envp;
  if (options.env) envp = arguments(*options.env);

  ChildPlan plan{};
  plan.program = options.program.c_str();
  plan.argv = argv.data();
  plan.envp = options.env ? envp.data() : environ;
  plan.working_directory =
      options.working_directory.empty() ? nullptr : options.working_directory.c_str();
  plan.standard = {options.in ? options.in->get() : -1, options.out ? options.out->get() : -1,
                   options.err ? options.err->get() : -1};
  plan.keep = options.keep.data();
  plan.keep_count = options.keep.size();
  plan.third = options.third;
  plan.die_with_parent = options.die_with_parent;
  plan.new_session = options.new_session;

  void* stack = ::mmap(nullptr, kChildStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return errno_now().error("start " + quote(options.program));

  // No signal handler of ours may run in the child while it shares our memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  pid_t pid = ::clone(child_main, static_cast<char*>(stack) + kChildStack, flags, &plan, &pidfd);
  int clone_failure = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, kChildStack);
  if (pid < 0) return sys_error(clone_failure, "start " + quote(options.program));

  Process process(pid, Fd(pidfd));
  if (plan.failure != 0) {
    ignore(process.wait());  // the child has reported the reason already
    return sys_error(plan.failure, "start " + quote(options.program));
  }
  return process;
}

Result<CommandOutput> run_command(SpawnOptions options, std::string_view input,
                                  std::chrono::milliseconds deadline, size_t max_bytes) {
  Pipe in = TRY(make_pipe());
  Pipe out = TRY(make_pipe());
  Pipe err = TRY(make_pipe());
  options.in = &in.read;
  options.out = &out.write;
  options.err = &err.write;
  Process process = TRY(spawn(options));
  in.read.reset();
  out.write.reset();
  err.write.reset();
  for (const Fd* fd : {&in.write, &out.read, &err.read}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);

  // SIGPIPE from a child that does not read must not end us.
  struct sigaction ignore_pipe {};
  struct sigaction before {};
  ignore_pipe.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore_pipe, &before);

  CommandOutput output;
  auto end = std::chrono::steady_clock::now() + deadline;
  bool late = false;
  bool too_much = false;
  auto collect = [&](Fd& fd, std::string& text) {
    std::array<char, 16384> buffer;
    ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
      too_much = too_much || text.size() > max_bytes;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      fd.reset();
    }
  };
  if (input.empty()) in.write.reset();
  while ((out.read || err.read) && !too_much) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      late = true;
      break;
    }
    std::array<pollfd, 3> set{
        {{in.write.get(), POLLOUT, 0}, {out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    int ready = ::poll(set.data(), set.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    if (set[0].revents != 0) {
      ssize_t count = ::write(in.write.get(), input.data(), input.size());
      if (count > 0) input.remove_prefix(static_cast<size_t>(count));
      if (input.empty() || (count < 0 && errno != EAGAIN && errno != EINTR)) in.write.reset();
    }
    if (set[1].revents != 0) collect(out.read, output.out);
    if (set[2].revents != 0) collect(err.read, output.err);
  }
  ::sigaction(SIGPIPE, &before, nullptr);
  if (too_much) {
    return make_error(Kind::corrupt, "run " + quote(options.program) + ": prints more than " +
                                         std::to_string(max_bytes) + " bytes");
  }
  std::optional<ExitStatus> status;
  if (!late) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    status = TRY(process.wait_for(left));
  }
  if (!status) {
    return make_error(Kind::interrupted, "run " + quote(options.program) + ": no end within " +
                                             std::to_string(deadline.count()) + " ms");
  }
  output.status = *status;
  return output;
}

Result<Fd> open_pidfd(pid_t pid) {
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (fd < 0 && errno == ENOSYS) {
    // COMPAT(5.3): delete when that is our baseline. A handle of the directory also identifies one
    // process.
    return open_at(cwd(), "/proc/" + std::to_string(pid), O_RDONLY | O_DIRECTORY);
  }
  if (fd < 0) return errno_now().error("open process " + std::to_string(pid));
  return Fd(fd);
}

Result<pid_t> pid_of(const Fd& pidfd) {
  std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd.get());
  std::string text = TRY(read_file(cwd(), path));
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("Pid:")) continue;
    auto number = parse_i64(trim(line.substr(4)));
    if (number && *number > 0) return static_cast<pid_t>(*number);
  }
  return make_error(Kind::not_found, "find the number of a process");
}

Result<Fd> take_descriptor(const Fd& pidfd, int number) {
  long fd = ::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0U);
  if (fd < 0) return errno_now().error("take a descriptor of another process");
  return Fd(static_cast<int>(fd));
}

Result<bool> await_end(const Fd& process, std::chrono::milliseconds deadline) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    // COMPAT(5.3): delete when that is our baseline. poll(2) cannot wait for a directory of procfs.
    auto status = read_file(process, "stat", 4096);
    bool directory = status.ok() || status.error().sys_errno != ENOTDIR;
    if (directory && (!status.ok() || status->find(") Z") != std::string::npos)) return true;
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (directory && left > kLook) left = kLook;
    pollfd entry{directory ? -1 : process.get(), POLLIN, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return errno_now().error("wait for a process");
    if (std::chrono::steady_clock::now() >= end) return false;
  }
}

Result<std::string> program_directory() {
  const char* chosen = ::getauxval(AT_SECURE) == 0 ? std::getenv("BERTH_LIBEXEC_DIR") : nullptr;
  if (chosen != nullptr && chosen[0] == '/') return std::string(chosen);
  // Read only once: after entering another mount namespace the file may have no path any more.
  static const Result<std::string> found = read_link(cwd(), "/proc/self/exe");
  std::string program = TRY(Result<std::string>(found));
  return program.substr(0, program.rfind('/'));
}

Result<uint64_t> process_start_time(pid_t pid) {
  return TRY(read_process_stat(pid)).start_time;
}

bool runs(pid_t pid, uint64_t start_time) {
  auto stat = read_process_stat(pid);
  bool is_zombie = stat.ok() && (stat->state == 'Z' || stat->state == 'X');
  return stat.ok() && stat->start_time == start_time && !is_zombie;
}

Result<std::string> boot_id() {
  std::string text = TRY(read_record("/proc/sys/kernel/random/boot_id"));
  return std::string(trim(text));
}

ExitStatus exit_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return ExitStatus{0, WTERMSIG(wait_status)};
  return ExitStatus{WEXITSTATUS(wait_status), 0};
}

std::optional<ExitStatus> look_at_exit(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
      info.si_pid != pid) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{info.si_status, 0};
  return ExitStatus{0, info.si_status};
}

void reap_others(pid_t kept, pid_t also) {
  // waitid(2) returns an ended kept process until it is reaped, so the processes behind it have to
  // wait.
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return;
    if (info.si_pid == 0 || info.si_pid == kept || info.si_pid == also) return;
    ::waitpid(info.si_pid, nullptr, __WALL);
  }
}

std::optional<ExitStatus> exit_of(const Fd& pidfd) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (::ioctl(pidfd.get(), _IOWR(0xFF, 11, PidfdInfo), &info) != 0) return std::nullopt;
  if ((info.mask & kInfoExit) == 0) return std::nullopt;
  return exit_status(info.exit_code);
}

}  // namespace berth::sys
