// SPDX-License-Identifier: Apache-2.0
#include "spank/start.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "base/text.hpp"
#include "slurm/hold.hpp"
#include "spank/message.hpp"

namespace berth::spank {
namespace {

constexpr int kOrder = slurm::kRightsFile + 1;  ///< receives the order to start berth
constexpr off_t kMaxStartEnvironment = off_t{8} << 20;
/// The descriptors that come with the order, from the task: standard error, the variables, the
/// mount namespace and the directory.
constexpr int kOrderFds = 4;
constexpr const char* kMounts = "/proc/self/ns/mnt";
constexpr const char* kUsers = "/proc/self/ns/user";

// ---- in the fork of slurmstepd, which has threads: only system calls ----------------------------

[[noreturn]] void fail(int error) {
  ssize_t told = ::send(kOrder, &error, sizeof error, MSG_NOSIGNAL);
  _exit(told == sizeof error ? 127 : 126);
}

/// A copy of `fd` with a number that does not collide with the fixed descriptors.
int moved_up(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

/// Keeps only standard input, output and error, at /dev/null, the descriptors of slurm/hold.hpp,
/// and kOrder.
bool keep_alone(const Program& program, int order) {
  int step = moved_up(program.step);
  int file = moved_up(program.rights);
  int mine = moved_up(order);
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (step < 0 || file < 0 || mine < 0 || null < 0) return false;
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, fd) < 0) return false;
  }
  if (::dup2(step, slurm::kHoldSocket) < 0 || ::dup2(file, slurm::kRightsFile) < 0 ||
      ::dup2(mine, kOrder) < 0) {
    return false;
  }
  close_from(kOrder + 1);
  return ::fcntl(kOrder, F_SETFD, FD_CLOEXEC) == 0;
}

/// Makes the OOM killer consider this process: slurmstepd is exempt, a process of the user is not.
void be_mortal() {
  int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t written = ::write(fd, "0", 1);
  static_cast<void>(written);  // a hardened node may not allow it
  ::close(fd);
}

/// Enters the mount namespace `mounts`, unless that is -1, and sets the real and the saved ids of
/// the user, too. In between, as root, it looks up no path. The supplementary groups are set
/// already. Uses raw system calls, because the functions of libc would synchronise with the threads
/// of slurmstepd.
bool become_user(uid_t user, gid_t group, int mounts = -1) {
  constexpr uid_t kSame = static_cast<uid_t>(-1);
  if (::getuid() != 0) return mounts < 0 && ::getuid() == user;
  if (user != 0 && ::syscall(SYS_setresuid, kSame, 0, kSame) != 0) return false;
  be_mortal();
  if (mounts >= 0 && ::setns(mounts, CLONE_NEWNS) != 0) return false;
  if (::syscall(SYS_setresgid, group, group, group) != 0) return false;
  if (::syscall(SYS_setresuid, user, user, user) != 0) return false;
  // Check the ids, since an id of -1 would have changed nothing.
  if (::getuid() != user || ::getgid() != group) return false;
  // If the process can become root again, it is still root.
  return user == 0 || ::syscall(SYS_setresuid, kSame, 0, kSame) != 0;
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The variables in a memory file, each with a terminating null, for execve(2); nullptr: not such a
/// file.
char** map_environment(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || status.st_size <= 0 || status.st_size > kMaxStartEnvironment) {
    return nullptr;
  }
  auto size = static_cast<size_t>(status.st_size);
  // A private copy, which no other process can change meanwhile.
  void* text = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (text == MAP_FAILED || ::pread(file, text, size, 0) != status.st_size) return nullptr;
  auto* bytes = static_cast<char*>(text);
  if (bytes[size - 1] != '\0') return nullptr;
  auto count = static_cast<size_t>(std::count(bytes, bytes + size, '\0'));
  void* room = ::mmap(nullptr, (count + 1) * sizeof(char*), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto** entries = static_cast<char**>(room);
  size_t next = 0;
  for (size_t at = 0; at < size; at += std::strlen(bytes + at) + 1) entries[next++] = bytes + at;
  return entries;  // new pages are zero, so the list ends with a null
}

/// Whether `space` is the namespace of this process at `place`.
bool is_same(int space, const char* place) {
  struct stat own {};
  struct stat its {};
  return ::stat(place, &own) == 0 && ::fstat(space, &its) == 0 && own.st_dev == its.st_dev &&
         own.st_ino == its.st_ino;
}

/// Whether the mount namespace belongs to the user namespace of root of the machine. In a mount
/// namespace that a user made in a user namespace, set-user-ID programs of the machine would run
/// with libraries and files that the user chose.
bool is_made_by_root(int space) {
  int owner = ::ioctl(space, NS_GET_USERNS);
  bool own = owner >= 0 && is_same(owner, kUsers);
  if (owner >= 0) ::close(owner);
  return own;
}

/// If the job has a mount namespace that slurmstepd is not in (job_container/tmpfs), enters that
/// namespace and the directory of the task.
bool follow_task(int space, int directory) {
  uid_t user = ::geteuid();
  gid_t group = ::getegid();
  if (is_same(space, kMounts)) return become_user(user, group);
  if (!is_made_by_root(space)) return false;
  return become_user(user, group, space) && ::fchdir(directory) == 0;
}

/// Waits for the order, then executes berth.
[[noreturn]] void await_order(const Program& program, char** argv, int order) {
  if (::setsid() < 0 || !keep_alone(program, order)) _exit(126);
  reset_signals();
  int fds[kOrderFds] = {-1, -1, -1, -1};
  char byte = 0;
  // The socket closes if all tasks have ended: then no task will ask.
  Received got = receive(kOrder, &byte, 1, fds, kOrderFds);
  if (got.bytes != 1) _exit(0);
  if (got.fds != kOrderFds) fail(EPROTO);
  errno = EPERM;  // for failures that set no errno
  if (!follow_task(fds[2], fds[3])) fail(errno);
  char** environment = map_environment(fds[1]);
  if (environment == nullptr) fail(EPROTO);
  if (::dup2(fds[0], STDERR_FILENO) < 0) fail(errno);
  if (program.shows_output && ::dup2(fds[0], STDOUT_FILENO) < 0) fail(errno);
  ::execve(program.path.c_str(), argv, environment);
  fail(errno);
}

[[noreturn]] void fork_again(const Program& program, char** argv, int order) {
  // Fork twice, so that slurmstepd has no unknown child.
  pid_t second = ::fork();
  if (second < 0) _exit(errno);
  if (second == 0) await_order(program, argv, order);
  auto handle = static_cast<int>(::syscall(SYS_pidfd_open, second, 0));
  if (handle >= 0) send(order, "p", 1, &handle, 1);
  _exit(0);
}

/// Pointers to `words` with a terminating null, for execve(2), which does not write into the
/// strings.
std::vector<char*> words_of(const std::vector<std::string>& words) {
  std::vector<char*> out = {const_cast<char*>("berth")};
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

void close_from(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  rlimit limit{1024, 1024};  // Linux before 5.9
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (auto fd = first; fd < limit.rlim_cur && fd < 65536; ++fd) ::close(static_cast<int>(fd));
}

Result<Waiting> fork_berth(const Program& program) {
  std::vector<char*> argv = words_of(program.words);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return errno_now().error("start " + quote(program.path));
  }
  pid_t first = ::fork();
  if (first == 0) fork_again(program, argv.data(), pair[1]);
  SavedErrno error = errno_now();
  int status = 0;
  while (first > 0 && ::waitpid(first, &status, 0) < 0 && errno == EINTR) {
  }
  Waiting waiting;
  waiting.order = pair[0];
  char byte = 0;
  receive(pair[0], &byte, 1, &waiting.process, 1, MSG_DONTWAIT);
  ::close(pair[1]);
  if (first > 0 && status == 0) return waiting;
  ::close(waiting.order);
  if (first < 0) return error.error("start " + quote(program.path));
  return make_error(Kind::io, "start " + quote(program.path) + ": no process could be made");
}

Result<void> begin_berth(int order, const std::vector<std::string>& environment) {
  std::string text;
  for (const std::string& entry : environment) text.append(entry).push_back('\0');
  int file = ::memfd_create("environment", MFD_CLOEXEC);
  bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int mounts = ::open(kMounts, O_RDONLY | O_CLOEXEC);
  int directory = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fds[kOrderFds] = {STDERR_FILENO, file, mounts, directory};
  bool sent = written && mounts >= 0 && directory >= 0 && send(order, "b", 1, fds, kOrderFds);
  SavedErrno saved = errno_now();
  for (int fd : {file, mounts, directory}) {
    if (fd >= 0) ::close(fd);
  }
  int error = 0;
  bool failed = sent && receive(order, &error, sizeof error, nullptr, 0).bytes == sizeof error;
  ::close(order);
  if (!sent) return saved.error("let berth begin");
  if (failed) return sys_error(error, "execute berth for this step");
  return {};
}

namespace {

constexpr off_t kMaxSaid = 4096;

/// A file for the messages of a program. Writing more than its size fails.
Result<int> make_short_file() {
  int file = ::memfd_create("said", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file >= 0 && ::ftruncate(file, kMaxSaid) == 0 &&
      ::fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0) {
    return file;
  }
  Error error = errno_now().error("make a memory file");
  if (file >= 0) ::close(file);
  return error;
}

std::string first_line(int file) {
  std::array<char, kMaxSaid> room{};
  ssize_t count = ::pread(file, room.data(), room.size(), 0);
  std::string_view text(room.data(), count > 0 ? static_cast<size_t>(count) : 0);
  return escape_controls(text.substr(0, text.find_first_of(std::string_view("\n\0", 2))));
}

[[noreturn]] void run_as_user(const Errand& errand, char** argv, int said) {
  // slurmstepd has closed its standard input, so each of these descriptors may have the number 0.
  int file = moved_up(errand.environment);
  int error = moved_up(said);
  int null = ::open("/dev/null", O_RDWR);
  if (::setsid() < 0 || file < 0 || error < 0 || null < 0 || ::dup2(null, STDIN_FILENO) < 0 ||
      ::dup2(null, STDOUT_FILENO) < 0 || ::dup2(error, STDERR_FILENO) < 0) {
    _exit(126);
  }
  char** environment = map_environment(file);
  close_from(STDERR_FILENO + 1);
  bool is_root = ::getuid() == 0;
  if (environment == nullptr || ::chdir("/") != 0 ||
      (is_root && ::syscall(SYS_setgroups, 0, nullptr) != 0) ||
      !become_user(errand.user, errand.group)) {
    _exit(126);
  }
  // slurmd may time out and kill this process's parent first. Set after the change of the user,
  // which clears it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  reset_signals();
  ::execve(errand.path.c_str(), argv, environment);
  _exit(127);
}

/// The children of all threads, since the kernel may give an orphan to any thread.
/// proc_pid_task_children(5)
std::set<pid_t> children() {
  std::set<pid_t> out;
  DIR* threads = ::opendir("/proc/self/task");
  if (threads == nullptr) return out;
  while (const dirent* thread = ::readdir(threads)) {
    std::ifstream file(std::string("/proc/self/task/") + thread->d_name + "/children");
    for (pid_t pid = 0; file >> pid;) out.insert(pid);
  }
  ::closedir(threads);
  return out;
}

/// While this object exists, orphans of processes started here, in any session, become children of
/// this process; the destructor kills them.
class Orphans {
 public:
  Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }
  Orphans(Orphans&&) = delete;
  ~Orphans() {
    constexpr int kRounds = 200;
    constexpr int kPause = 10;  // ms
    for (int i = 0; i < kRounds && kill_new(); ++i) ::poll(nullptr, 0, kPause);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  }

 private:
  bool kill_new() const {
    bool any = false;
    for (pid_t pid : children()) {
      if (before_.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);  // the pid is not reused before it is reaped
      ::waitpid(pid, nullptr, WNOHANG);
    }
    return any;
  }

  std::set<pid_t> before_ = children();
};

}  // namespace

Result<void> run_errand(const Errand& errand) {
  std::vector<char*> argv = words_of(errand.words);
  int said = TRY(make_short_file());
  Orphans orphans;
  pid_t child = ::fork();
  if (child == 0) run_as_user(errand, argv.data(), said);
  if (child < 0) {
    Error error = errno_now().error("start " + quote(errand.path));
    ::close(said);
    return error;
  }
  auto handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd entry{handle, POLLIN, 0};
  while (handle >= 0 && ::poll(&entry, 1, errand.patience) < 0 && errno == EINTR) {
  }
  // Kill before reaping the child: until then the pid cannot be reused.
  ::kill(-child, SIGKILL);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (handle >= 0) ::close(handle);
  std::string line = first_line(said);
  ::close(said);
  if (entry.revents == 0) {
    return make_error(Kind::io, quote(errand.path) + " has not ended within " +
                                    std::to_string(errand.patience / 1000) + " s, and is killed");
  }
  if (status == 0) return {};
  std::string how = WIFSIGNALED(status) ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                        : "ended with " + std::to_string(WEXITSTATUS(status));
  return make_error(Kind::io,
                    quote(errand.path) + " " + how + (line.empty() ? "" : " and said: " + line));
}

}  // namespace berth::spank
