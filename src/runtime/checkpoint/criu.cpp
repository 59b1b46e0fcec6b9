// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/criu.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/program.hpp"

namespace berth::runtime {
namespace {

constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::chrono::seconds kCheckTime{120};
constexpr size_t kMaxLog = size_t{64} << 20;

/// "(00.0123)  13: Error (criu/mount.c:9): mnt: text" → "mnt: text"; nothing for other lines.
std::optional<std::string> error_of(std::string_view line) {
  constexpr std::string_view kMark = "Error (";
  size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  size_t end = line.find("): ", mark);
  line = trim(end == std::string_view::npos ? line.substr(mark) : line.substr(end + 3));
  // These two messages follow every failed program and every failed dump, and give no reason.
  if (line.starts_with("exited, status=") || line.ends_with("FAILED.")) return std::nullopt;
  return std::string(line);
}

std::vector<std::string> errors_of(std::string_view text) {
  std::vector<std::string> found;
  for (std::string_view line : split(text, '\n')) {
    if (auto error = error_of(line)) found.push_back(std::move(*error));
  }
  return found;
}

Result<void> check(const std::string& program) {
  sys::SpawnOptions options;
  options.program = program;
  options.args = {"criu", "check"};
  options.env = criu_environment();
  options.working_directory = "/";
  auto output = TRY(sys::run_command(std::move(options), "", kCheckTime));
  if (output.status.shell_code() == 0) return {};
  // The first error is the cause, the others are consequences.
  auto errors = errors_of(output.out + output.err);
  std::string reason = errors.empty() ? std::string(trim(output.err)) : errors.front();
  return make_error(
      Kind::unsupported,
      "check for CRIU: 'criu check' says that it cannot work here: " + escape_controls(reason),
      "criu check");
}

Result<std::string> open_directory(const std::string& path, bool make) {
  if (make) TRY(sys::make_directories(sys::cwd(), path, 0700));
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY));
  return sys::read_link(sys::cwd(), sys::fd_path(directory));
}

bool is_kernels_own(const std::string& type) {
  constexpr std::string_view kTypes[] = {"proc", "sysfs", "mqueue", "cgroup", "cgroup2"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

}  // namespace

std::vector<std::string> criu_environment() {
  return {kPath};
}

bool has_iptables() {
  auto directories = split(std::string_view(kPath).substr(5), ':');
  return std::ranges::any_of(directories, [](std::string_view directory) {
    return sys::check_executable(std::string(directory) + "/iptables-restore").ok();
  });
}

Result<std::string> find_criu() {
  // Not looked up in PATH, because criu runs with all rights of the caller.
  constexpr std::array<const char*, 4> kPlaces = {"/usr/local/sbin/criu", "/usr/sbin/criu",
                                                  "/usr/bin/criu", "/sbin/criu"};
  for (const char* place : kPlaces) {
    if (!sys::check_executable(place).ok()) continue;
    TRY(check(place));
    return std::string(place);
  }
  return make_error(Kind::unsupported, "check for CRIU: no 'criu' in /usr/sbin",
                    "install the package criu");
}

Result<CriuDirectories> open_criu_directories(const CriuOptions& options, MakeImages make) {
  CriuDirectories directories;
  std::string images = options.image_path.empty() ? "checkpoint" : options.image_path;
  directories.images = TRY(open_directory(images, make == MakeImages::yes));
  directories.work =
      options.work_path.empty() ? directories.images : TRY(open_directory(options.work_path, true));
  return directories;
}

std::vector<std::string> criu_command(const std::string& program, const std::string& verb,
                                      const CriuDirectories& directories,
                                      const CriuOptions& options) {
  std::vector<std::string> words{program,        verb,
                                 "--images-dir", directories.images,
                                 "--work-dir",   directories.work,
                                 "--log-file",   verb + ".log",
                                 "-v4",          "--manage-cgroups=" + options.manage_cgroups_mode};
  const std::array<std::pair<bool, const char*>, 8> flags = {
      {{options.tcp_established, "--tcp-established"},
       {options.tcp_skip_in_flight, "--skip-in-flight"},
       {options.link_remap, "--link-remap"},
       {options.external_unix_sockets, "--ext-unix-sk"},
       {options.shell_job, "--shell-job"},
       {options.file_locks, "--file-locks"},
       {options.lazy_pages, "--lazy-pages"},
       {options.auto_dedup, "--auto-dedup"}}};
  for (const auto& [wanted, word] : flags) {
    if (wanted) words.emplace_back(word);
  }
  return words;
}

Error criu_error(const CriuDirectories& directories, const std::string& verb,
                 const sys::ExitStatus& status, std::string_view printed) {
  std::string path = directories.work + "/" + verb + ".log";
  auto log = sys::read_file(sys::cwd(), path, kMaxLog);
  auto errors = errors_of(log.ok() ? std::string_view(*log) : printed);
  if (errors.empty()) errors.emplace_back(trim(printed));
  constexpr size_t kMost = 3;
  if (errors.size() > kMost) errors.erase(errors.begin(), errors.end() - kMost);
  return make_error(Kind::io,
                    "run 'criu " + verb + "': exit status " + std::to_string(status.shell_code()) +
                        ": " + escape_controls(join(errors, "; ")),
                    path);
}

Result<std::vector<OutsideNamespace>> outside_namespaces(const plan::Plan& plan) {
  std::vector<OutsideNamespace> outside;
  for (const auto& one : plan::find<plan::Spawn>(plan)->joined) {
    if (one.type == "network") {
      outside.push_back({"net", "extRootNetNS", one.path});
    } else if (one.type == "pid") {
      outside.push_back({"pid", "extRootPidNS", one.path});
    } else if (one.type == "ipc" || one.type == "uts") {
      outside.push_back({one.type, "", one.path});
    } else {
      return make_error(Kind::unsupported,
                        "config.json: linux.namespaces: CRIU cannot restore a "
                        "process into the " +
                            one.type + " namespace of others");
    }
  }
  return outside;
}

Result<void> check_restorable(const plan::Plan& plan) {
  if (plan::find<plan::MakeConsole>(plan) != nullptr) {
    return make_error(Kind::unsupported,
                      "config.json: process.terminal: a container with a terminal cannot be "
                      "checkpointed or restored");
  }
  if (plan::find<plan::EnterSharedRoot>(plan) != nullptr) {
    return make_error(Kind::unsupported,
                      "config.json: linux.namespaces: a container without a mount namespace of its "
                      "own cannot be checkpointed or restored");
  }
  if (plan::find<plan::MountOverlayRoot>(plan) != nullptr) {
    return make_error(Kind::unsupported,
                      "config.json: mounts: a container with an overlay at '/' cannot be "
                      "checkpointed or restored");
  }
  if (plan::find<plan::PlaceLoaderFiles>(plan) != nullptr) {
    return make_error(Kind::unsupported,
                      "config.json: annotations: a container with driver files cannot be "
                      "checkpointed or restored");
  }
  return {};
}

std::vector<sys::MountEntry> outside_mounts(const std::vector<sys::MountEntry>& container,
                                            const std::vector<sys::MountEntry>& host,
                                            const std::vector<std::string>& bound) {
  std::set<std::string_view> devices;
  for (const auto& mount : host) devices.insert(mount.device);
  // The last mount at "/" is the one that the container sees.
  auto root = std::find_if(container.rbegin(), container.rend(),
                           [](const auto& line) { return line.point == "/"; });
  std::vector<sys::MountEntry> outside;
  for (const auto& line : container) {
    if (line.point == "/") continue;
    bool is_bound = std::ranges::any_of(
        bound, [&](const std::string& place) { return is_below(line.point, place); });
    bool of_root =
        root != container.rend() && line.device == root->device && is_below(line.root, root->root);
    bool of_host =
        devices.contains(line.device) && !of_root && (line.follows || !is_kernels_own(line.type));
    if (is_bound || of_host) outside.push_back(line);
  }
  return outside;
}

}  // namespace berth::runtime
