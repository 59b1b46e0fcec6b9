// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// How a process ended, in a shell's terms: 0–255, or 128 + signal.
struct ExitStatus {
  int code = 0;    ///< exit code when signal is 0
  int signal = 0;  ///< the signal that ended it, or 0
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

/// Owns a child: kills and reaps it when dropped.
class Process {
 public:
  Process() = default;
  Process(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  const Fd& pidfd() const { return pidfd_; }
  explicit operator bool() const { return pid_ > 0; }

  /// Waits for the end and reaps it. waitpid(2)
  Result<ExitStatus> wait();
  /// As wait(), until the deadline. Nothing when the deadline passes first; the process continues
  /// then.
  Result<std::optional<ExitStatus>> wait_for(std::chrono::milliseconds deadline);
  /// Errors: not_found (it has ended). pidfd_send_signal(2)
  Result<void> signal(int number) const;
  /// Gives up ownership: other code reaps it.
  pid_t release();

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
};

/// The null-terminated list for execve(2); it points into `strings`.
inline std::vector<char*> arguments(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// The program and the environment of a child. Descriptors 0–2 are inherited unless given here. All
/// others are closed on exec, except those in `keep`, which the caller has made inheritable.
struct SpawnOptions {
  std::string program;                          ///< absolute path; no PATH search
  std::vector<std::string> args;                ///< argv, argv[0] included
  std::optional<std::vector<std::string>> env;  ///< absent: our own environment
  const Fd* in = nullptr;
  const Fd* out = nullptr;
  const Fd* err = nullptr;
  std::vector<int> keep;          ///< descriptors that stay open under their number
  int third = -1;                 ///< becomes descriptor 3 in the child; `keep` has to list 3 too
  std::string working_directory;  ///< empty: our own
  /// When this process dies, the kernel sends SIGKILL to the program (PR_SET_PDEATHSIG).
  bool die_with_parent = true;
  bool new_session = false;  ///< setsid
};

/// Starts a program. Returns once exec has succeeded.
/// Errors: not_found, denied (exec), io. clone(2) CLONE_VFORK|CLONE_VM, execve(2)
Result<Process> spawn(const SpawnOptions& options);

struct CommandOutput {
  ExitStatus status;
  std::string out;
  std::string err;
};
/// Runs a program to its end with `input` on its standard input and collects its output and errors
/// (at most `max_bytes` each). Kills it at the deadline: Kind::interrupted.
Result<CommandOutput> run_command(SpawnOptions options, std::string_view input,
                                  std::chrono::milliseconds deadline,
                                  size_t max_bytes = size_t{16} << 20);

/// A handle of a process, which need not be our child. For Process and await_end().
/// Errors: not_found. pidfd_open(2)
Result<Fd> open_pidfd(pid_t pid);
/// The pid, in our pid namespace, of the process of `pidfd`. Errors: not_found (it has ended).
/// proc(5) /proc/PID/fdinfo "Pid"
Result<pid_t> pid_of(const Fd& pidfd);
/// Whether the process ends (or has ended) before the deadline. poll(2)
Result<bool> await_end(const Fd& process, std::chrono::milliseconds deadline);

/// Duplicates descriptor `number` of another process, close on exec.
/// Errors: denied, not_found (it has ended), io (it has no such descriptor).  pidfd_getfd(2)
Result<Fd> take_descriptor(const Fd& pidfd, int number);

/// The directory of the running program and its sibling programs. BERTH_LIBEXEC_DIR overrides it,
/// unless the program runs with raised privileges (AT_SECURE).
Result<std::string> program_directory();

/// Field 22 of /proc/PID/stat: the start time in clock ticks since boot. Together with the pid it
/// identifies one process until the next boot. Errors: not_found.
Result<uint64_t> process_start_time(pid_t pid);

/// Whether the process with this pid and start time runs; a zombie does not.
bool runs(pid_t pid, uint64_t start_time);

/// /proc/sys/kernel/random/boot_id without its newline.
Result<std::string> boot_id();

// The exit status of processes that we cannot reap, or do not want to reap yet.

/// Converts a status of wait4(2).
ExitStatus exit_status(int wait_status);

/// How our child `pid` ended, without reaping it, so that the status is not lost if we are killed
/// now. Nothing when the process still runs or is not a child of ours. waitid(2) WNOWAIT
std::optional<ExitStatus> look_at_exit(pid_t pid);

/// Reaps all ended children except `kept` and `also`: a subreaper gets the orphans of containers
/// that share its pid namespace.
void reap_others(pid_t kept, pid_t also = -1);

/// How the process of `pidfd` ended. It need not be our child, and may have been reaped after the
/// handle was opened. Nothing if the kernel does not report it (Linux < 6.15). pidfd_open(2),
/// PIDFD_GET_INFO
std::optional<ExitStatus> exit_of(const Fd& pidfd);

}  // namespace berth::sys
