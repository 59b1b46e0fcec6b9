// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/state.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "oci/shared_fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"

namespace berth::runtime {

void fields(auto& v, State& state) {
  v.required("ociVersion", state.oci_version);
  v.required("id", state.id);
  v.required("pid", state.pid);
  v.required("startTime", state.start_time);
  v.required("bootId", state.boot_id);
  v.required("bundle", state.bundle);
  v.optional("config", state.config);
  v.required("rootfs", state.rootfs);
  v.required("cgroupPath", state.cgroup_path);
  v.optional("cgroupStarts", state.cgroup_starts);
  v.optional("resctrlGroup", state.resctrl_group);
  v.optional("gpuLease", state.gpu_lease);
  v.optional("systemdUnit", state.systemd_unit);
  v.optional("systemdUser", state.systemd_user);
  v.required("created", state.created);
  v.required("owner", state.owner);
  v.optional("annotations", state.annotations);
  v.optional("hooks", state.hooks);
  v.optional("ofEngine", state.of_engine);
  v.optional("loaderFiles", state.loader_files);
  v.optional("addedDevices", state.added_devices);
  v.optional("addedGids", state.added_gids);
}

namespace {

constexpr const char* kFile = "state.json";
constexpr size_t kPage = 4096;
constexpr size_t kMaxState = size_t{32} << 20;  // enough for the annotations of any config.json
constexpr size_t kMaxId = 1024;

// Field 3 of /proc/PID/stat, '?' for a process that has ended.
char process_state(pid_t pid) {
  auto text = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/stat", 4096);
  size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  return name_end == std::string::npos || name_end + 2 >= text->size() ? '?'
                                                                       : (*text)[name_end + 2];
}

Result<void> check_id(const std::string& id) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '.';
  };
  if (id.empty() || id.size() > kMaxId) {
    return make_error(Kind::usage, "container ID " + quote(id) + ": expected 1 to " +
                                       std::to_string(kMaxId) + " characters");
  }
  auto wrong = id[0] == '.' ? id.begin() : std::ranges::find_if_not(id, allowed);
  if (wrong == id.end()) return {};
  std::string where = wrong == id.begin() ? " at the start of" : " in";
  return make_error(Kind::usage, "invalid character " + quote(std::string(1, *wrong)) + where +
                                     " container ID " + quote(id) +
                                     ": expected letters, digits and _ + - .");
}

}  // namespace

std::string_view status_name(Status status) {
  static constexpr std::string_view kNames[] = {"creating", "created", "running", "paused",
                                                "stopped"};
  return kNames[static_cast<size_t>(status)];
}

json::Value public_state_value(const State& state, std::string_view status) {
  json::Object object;
  object.emplace_back("ociVersion", state.oci_version);
  object.emplace_back("id", state.id);
  object.emplace_back("pid", int64_t{status == "stopped" ? 0 : state.pid});
  object.emplace_back("status", std::string(status));
  object.emplace_back("bundle", state.bundle);
  object.emplace_back("rootfs", state.rootfs);
  object.emplace_back("created", state.created);
  object.emplace_back("owner", std::to_string(state.owner));
  json::Object annotations;
  for (const auto& [key, value] : state.annotations) annotations.emplace_back(key, value);
  object.emplace_back("annotations", std::move(annotations));
  return object;
}

std::string public_state(const State& state, std::string_view status) {
  return json::dump(public_state_value(state, status), 2);
}

// Writes in place, because replacing the file changes two more inodes at every start, which takes
// milliseconds on some disks. The lock keeps readers from seeing a part of the document, and a
// signal does not interrupt a write within a page. The file never shrinks: blanks after the
// document overwrite the rest of an older one.
Result<void> Entry::write(const State& state) const {
  std::string text = json::write(state);
  // A kill may interrupt a write of more than a page.
  if (text.size() > kPage) return sys::replace_file(fd_, kFile, text, 0600);
  sys::Fd file = TRY(sys::open_at(fd_, kFile, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(file, sys::LockMode::exclusive, kFile));
  struct stat info = TRY(sys::stat_fd(file, kFile));
  text.resize(std::max(text.size(), static_cast<size_t>(info.st_size)), ' ');
  TRY(sys::write_all(file, text, kFile));
  return sys::close_checked(std::move(file), kFile);
}

Result<State> Entry::read() const {
  std::string context = "cannot read the state of container " + quote(id_);
  sys::Fd file = TRY_CTX(sys::open_at(fd_, kFile, O_RDONLY | O_NOFOLLOW), context);
  TRY_CTX(sys::wait_lock(file, sys::LockMode::shared, kFile), context);
  std::string text = TRY_CTX(sys::read_all(file, kFile, kMaxState), context);
  return json::read<State>(text, kFile);
}

Status Entry::status(const State& state) const {
  if (state.pid == 0) {
    // The creator of the container holds the lock as long as it lives.
    auto free = sys::try_lock(fd_, sys::LockMode::shared, id_);
    return free.ok() && *free ? Status::stopped : Status::creating;
  }
  auto boot = sys::boot_id();
  auto start = sys::process_start_time(state.pid);
  bool alive = boot.ok() && *boot == state.boot_id && start.ok() && *start == state.start_time &&
               process_state(state.pid) != 'Z';
  if (!alive) return Status::stopped;
  auto socket = sys::stat_entry(fd_, kStartSocket);
  return socket.ok() && *socket ? Status::created : Status::running;
}

Result<Store> Store::open(const std::string& root) {
  if (root.empty() || root.find_first_not_of('/') == std::string::npos) {
    return make_error(Kind::usage, "--root: '/' cannot hold container states");
  }
  auto opened = sys::open_if_exists(sys::cwd(), root, O_PATH | O_DIRECTORY);
  if (opened.ok() && !*opened) {
    TRY(sys::make_directories(sys::cwd(), root, 0700));
    opened = sys::open_if_exists(sys::cwd(), root, O_PATH | O_DIRECTORY);
  }
  if (!opened.ok()) return std::move(opened).error();
  if (!*opened) return make_error(Kind::not_found, "open " + quote(root));
  sys::Fd fd = std::move(**opened);
  struct stat info = TRY(sys::stat_fd(fd, root));
  // Users with write access here could make us kill or unmount anything.
  if (info.st_uid != sys::effective_uid() || (info.st_mode & 022) != 0) {
    return make_error(Kind::denied,
                      "--root: " + quote(root) + " is writable by others than its user");
  }
  return Store(std::move(fd));
}

Result<Entry> Store::claim(const std::string& id) const {
  TRY(check_id(id));
  auto made = sys::make_new_directory(fd_, id, 0700);
  if (!made.ok() && made.error().kind == Kind::exists) {
    return make_error(Kind::exists, "container " + quote(id) + " already exists",
                      "berth-runtime delete " + id);
  }
  TRY(std::move(made));
  sys::Fd fd = TRY(sys::open_at(fd_, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(sys::wait_lock(fd, sys::LockMode::exclusive, id));
  return Entry(id, std::move(fd));
}

Result<Entry> Store::get(const std::string& id) const {
  TRY(check_id(id));
  auto fd = TRY(sys::open_if_exists(fd_, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (!fd) return make_error(Kind::not_found, "container " + quote(id) + " does not exist");
  return Entry(id, std::move(*fd));
}

Result<std::vector<std::string>> Store::list() const {
  return sys::list_directory(fd_, ".");
}

Result<void> Store::remove(const std::string& id) const {
  TRY(check_id(id));
  // Most directories have one file. The removal of a whole tree is for containers that were never
  // started, and for directories that a crash left.
  TRY(sys::remove_entry(fd_, id + "/" + kFile));
  if (sys::remove_directory(fd_, id).ok()) return {};
  constexpr int kMostMarks = 20;
  for (int attempt = 0;; ++attempt) {
    auto removed = sys::remove_tree(fd_, id);
    bool has_grown = !removed.ok() && removed.error().sys_errno == ENOTEMPTY;
    // New files come from updates that have just looked the container up: each writes one
    // kUpdatedMark.
    if (!has_grown || attempt == kMostMarks) return removed;
  }
}

}  // namespace berth::runtime
