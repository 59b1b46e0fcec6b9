// SPDX-License-Identifier: Apache-2.0
#include "spank/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/text.hpp"

namespace berth::spank {
namespace {

constexpr std::string_view kCgroups = "/sys/fs/cgroup";

/// The content of a small file of /proc; empty if unreadable.
std::string read_proc(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 16384> room;
  ssize_t count = ::read(fd, room.data(), room.size());
  ::close(fd);
  return count > 0 ? std::string(room.data(), static_cast<size_t>(count)) : "";
}

/// The rest of the line after `word`, in the first line that contains it; empty: there is none.
std::string behind(const std::string& text, std::string_view word) {
  for (std::string_view line : split(text, '\n')) {
    size_t at = line.find(word);
    if (at != line.npos) return std::string(line.substr(at + word.size()));
  }
  return "";
}

/// Writes to a file of a cgroup.
bool write_into(const std::string& file, std::string_view text) {
  int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written;
}

/// With v2, where slurmstepd is in STEP/slurm and the task below STEP/user: the path of STEP/user.
std::string cgroup_of_tasks(const std::string& task) {
  constexpr std::string_view kDaemon = "/slurm";
  std::string own = behind(read_proc("/proc/self/cgroup"), "0::");
  if (!own.ends_with(kDaemon)) return "";
  std::string tasks = own.substr(0, own.size() - kDaemon.size()) + "/user";
  return behind(task, "0::").starts_with(tasks + "/") ? std::string(kCgroups) + tasks : "";
}

/// Removes a cgroup directory and all directories below it. Those below belong to containers of
/// root, and remain if berth was killed.
bool remove_tree(const std::string& directory) {
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return errno == ENOENT;
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    bool below = entry->d_type == DT_DIR && name != "." && name != "..";
    if (below) remove_tree(directory + "/" + entry->d_name);
  }
  ::closedir(entries);
  return ::rmdir(directory.c_str()) == 0;
}

/// COMPAT(5.14): write to cgroup.kill instead.
void kill_all(const std::string& directory) {
  if (write_into(directory + "/cgroup.kill", "1")) return;
  std::ifstream file(directory + "/cgroup.procs");
  for (pid_t pid = 0; file >> pid;) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      kill_all(directory + "/" + entry->d_name);
    }
  }
  ::closedir(entries);
}

}  // namespace

Result<std::string> track(pid_t task, int process) {
  std::string pid = behind(read_proc("/proc/self/fdinfo/" + std::to_string(process)), "Pid:\t");
  if (task <= 0 || process < 0 || pid.empty() || pid.starts_with('-')) return std::string();
  std::string cgroups = read_proc("/proc/" + std::to_string(task) + "/cgroup");
  std::string freezer = behind(cgroups, ":freezer:");
  if (freezer.size() > 1) {
    write_into(std::string(kCgroups) + "/freezer" + freezer + "/cgroup.procs", pid);
  }
  std::string tasks = cgroup_of_tasks(cgroups);
  if (tasks.empty()) return std::string();
  std::string own = tasks + "/berth";
  bool is_there = ::mkdir(own.c_str(), 0755) == 0 || errno == EEXIST;
  if (is_there && write_into(own + "/cgroup.procs", pid)) return own;
  SavedErrno error = errno_now();
  ::rmdir(own.c_str());
  return error.error("move berth into cgroup " + quote(own));
}

void remove_cgroup(const std::string& directory) {
  constexpr int kTries = 100;
  constexpr int kPause = 10;  // ms
  for (int i = 0; i < kTries && !remove_tree(directory) && errno == EBUSY; ++i) {
    kill_all(directory);
    ::poll(nullptr, 0, kPause);
  }
}

}  // namespace berth::spank
