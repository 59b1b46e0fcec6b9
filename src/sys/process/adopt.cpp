// SPDX-License-Identifier: Apache-2.0
#include "sys/process/adopt.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

using namespace std::chrono_literals;

constexpr const char* kMounts = "/ns/mnt";

/// The children of all threads: a child belongs to the thread that forked it.
std::vector<pid_t> children() {
  std::vector<pid_t> out;
  auto threads = list_directory(cwd(), "/proc/self/task");
  if (!threads.ok()) return out;
  for (const std::string& thread : *threads) {
    auto text = read_file(cwd(), "/proc/self/task/" + thread + "/children");
    if (!text.ok()) continue;
    for (std::string_view word : split(*text, ' ')) {
      pid_t pid = 0;
      std::from_chars(word.data(), word.data() + word.size(), pid);
      if (pid > 0) out.push_back(pid);
    }
  }
  return out;
}

}  // namespace

Result<void> become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return errno_now().error("adopt orphans");
  return {};
}

Result<Orphans> Orphans::adopt() {
  Orphans orphans;
  orphans.own_ = TRY(read_link(cwd(), std::string("/proc/self") + kMounts));
  TRY(become_subreaper());
  return orphans;
}

void Orphans::end() const {
  bool seen = false;
  int quiet = 0;
  for (int round = 0; round < 1000; ++round) {
    bool any = false;
    for (pid_t pid : children()) {
      // The process had ended already; its children are ours now.
      if (::waitpid(pid, nullptr, WNOHANG) == pid) {
        any = true;
        continue;
      }
      auto mounts = read_link(cwd(), "/proc/" + std::to_string(pid) + kMounts);
      if (mounts.ok() && *mounts == own_) continue;
      any = true;
      if (!mounts.ok()) continue;  // the process is ending
      ::kill(pid, SIGKILL);        // the pid cannot be reused until we have reaped it
      ::waitpid(pid, nullptr, WNOHANG);
    }
    quiet = any ? 0 : quiet + 1;
    // A process that keeps forking and ending may have been missed in between.
    if (quiet == (seen ? 3 : 1)) return;
    seen = seen || any;
    std::this_thread::sleep_for(any ? 1ms : 3ms);
  }
}

}  // namespace berth::sys
