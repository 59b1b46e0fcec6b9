// SPDX-License-Identifier: Apache-2.0
// bench_count_steps COMMAND [ARGUMENT…]: runs the command, single-steps it and all its descendants,
// and prints JSON on standard error: how many instructions each program executed in user mode.
// Needs no performance counters, which virtual machines seldom have, and counts the same in every
// run up to some hundred. A call in the kernel counts as one.  ptrace(2) PTRACE_SINGLESTEP
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

namespace {

constexpr int kCannotRun = 127;
constexpr int kSignalled = 128;

/// What a process has executed since its last execve.
struct Count {
  std::string program;
  uint64_t instructions = 0;
};

class Counter {
 public:
  /// The exit status of `first`, which has stopped itself.
  int follow(pid_t first) {
    long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    ptrace(PTRACE_SETOPTIONS, first, nullptr, options);
    ptrace(PTRACE_SINGLESTEP, first, nullptr, nullptr);
    int result = kCannotRun;
    while (true) {
      int status = 0;
      pid_t pid = waitpid(-1, &status, __WALL);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return result;
      if (WIFSTOPPED(status)) {
        go_on(pid, status);
        continue;
      }
      finish(pid);
      if (pid == first) {
        result = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
      }
    }
  }

  void print() const {
    uint64_t all = 0;
    std::string programs;
    for (const auto& [program, instructions] : by_program_) {
      all += instructions;
      programs +=
          (programs.empty() ? "\"" : ", \"") + program + "\": " + std::to_string(instructions);
    }
    std::fprintf(stderr, "{\"instructions\": %llu, \"programs\": {%s}}\n",
                 static_cast<unsigned long long>(all), programs.c_str());
  }

 private:
  void go_on(pid_t pid, int status) {
    int event = status >> 16;
    int signal = WSTOPSIG(status);
    Count& count = running_[pid];
    if (event == PTRACE_EVENT_EXEC) {
      finish(pid);
      running_[pid].program = name_of(pid);
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
      unsigned long child = 0;
      ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child);
      running_[static_cast<pid_t>(child)].program = count.program;
    } else if (signal == SIGTRAP) {
      ++count.instructions;
    }
    bool is_ours = event != 0 || signal == SIGTRAP || signal == SIGSTOP;
    ptrace(PTRACE_SINGLESTEP, pid, nullptr, is_ours ? 0L : static_cast<long>(signal));
  }

  void finish(pid_t pid) {
    auto found = running_.find(pid);
    if (found == running_.end()) return;
    by_program_[found->second.program] += found->second.instructions;
    running_.erase(found);
  }

  /// argv[0] without its directory.
  static std::string name_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    std::string name;
    std::getline(file, name, '\0');
    return name.substr(name.rfind('/') + 1);
  }

  std::map<pid_t, Count> running_;
  std::map<std::string, uint64_t> by_program_;
};

/// Each step switches between the stepped process and this one, which is faster on one CPU.
void stay_on_this_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
    std::perror("bench_count_steps: sched_setaffinity");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: bench_count_steps COMMAND [ARGUMENT...]\n", stderr);
    return 2;
  }
  stay_on_this_cpu();
  pid_t child = fork();
  if (child < 0) {
    std::perror("bench_count_steps: fork");
    return kCannotRun;
  }
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    execvp(argv[1], argv + 1);
    std::perror("bench_count_steps: execvp");
    _exit(kCannotRun);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Counter counter;
  int result = counter.follow(child);
  counter.print();
  return result;
}
