// SPDX-License-Identifier: Apache-2.0
#include "engine/context/paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/inventory/state_directory.hpp"
#include "sys/file/file.hpp"
#include "sys/process/console.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<std::string> absolute(std::string path) {
  if (path.starts_with('/')) return without_slashes(std::move(path));
  auto here = sys::working_directory();  // there is none if it was removed
  return without_slashes(TRY(absolute_path(path, here.ok() ? *here : "")));
}

Result<std::string> default_root(const Environment& environment, std::optional<unsigned> user) {
  if (!user) return std::string("/var/lib/berth");
  if (auto data = environment.get_filled("XDG_DATA_HOME"); data && data->starts_with('/')) {
    return std::string(*data) + "/berth";
  }
  if (auto home = environment.get_filled("HOME"); home && home->starts_with('/')) {
    return std::string(*home) + "/.local/share/berth";
  }
  return make_error(Kind::usage, "no place for the image store: HOME is not set", "--root DIR");
}

/// Berth later executes and trusts the files there, so no other user may write there.
Result<void> check_owner(const std::string& path, const std::string& what, std::string_view hint) {
  // In /tmp another user could have made the link; elsewhere it leads to a larger disk.
  int follow = path.substr(0, path.rfind('/')) == "/tmp" ? O_NOFOLLOW : 0;
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_PATH | O_DIRECTORY | follow));
  struct stat status = TRY(sys::stat_fd(directory, path));
  bool ours = status.st_uid == sys::effective_uid() || status.st_uid == 0;
  if (!ours) {
    return make_error(Kind::denied, what + " " + quote(path) + " belongs to another user",
                      std::string(hint));
  }
  // With umask 002 mkdir makes it group-writable; that is fine for the caller's own group.
  bool group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != sys::effective_gid();
  if (group || (status.st_mode & S_IWOTH) != 0) {
    return make_error(Kind::denied, what + " " + quote(path) + " is writable by others",
                      "chmod go-w " + path);
  }
  return {};
}

Result<void> make_private(const std::string& path) {
  auto made = sys::make_directory(sys::cwd(), path, 0700);
  if (made.ok() || made.error().kind != Kind::not_found) return made;
  TRY(sys::make_directories(sys::cwd(), path.substr(0, path.rfind('/')), 0755));
  return sys::make_directory(sys::cwd(), path, 0700);
}

/// `given`, then the stores of the environment; absolute paths without duplicates.
Result<std::vector<std::string>> additional_stores(std::vector<std::string> given,
                                                   const Environment& environment) {
  const std::string named(environment.get("BERTH_ADDITIONAL_STORES").value_or(""));
  for (std::string_view path : split(named, ':')) given.emplace_back(path);
  std::vector<std::string> stores;
  for (std::string& path : given) {
    if (path.empty()) continue;
    std::string whole = TRY(absolute(std::move(path)));
    if (std::ranges::find(stores, whole) == stores.end()) {
      stores.push_back(std::move(whole));
    }
  }
  return stores;
}

}  // namespace

Result<Paths> complete_paths(Paths given, const Environment& environment,
                             std::optional<unsigned> user) {
  Paths paths = std::move(given);
  if (paths.root.empty()) paths.root = TRY(default_root(environment, user));
  if (paths.state.empty()) {
    paths.state = gpu::state_directory(
        user, std::string(environment.get_filled("XDG_RUNTIME_DIR").value_or("")));
  }
  if (paths.libexec.empty()) paths.libexec = TRY(sys::program_directory());
  if (paths.driver_root.empty()) {
    paths.driver_root = environment.get_filled("BERTH_DRIVER_ROOT").value_or("/");
  }
  if (paths.config.empty()) paths.config = kSiteDirectory;
  for (std::string* path :
       {&paths.root, &paths.state, &paths.libexec, &paths.driver_root, &paths.config}) {
    *path = TRY(absolute(std::move(*path)));
  }
  for (std::string& path : paths.cdi_directories) path = TRY(absolute(std::move(path)));
  paths.additional_stores = TRY(additional_stores(std::move(paths.additional_stores), environment));
  return paths;
}

Result<void> make_directories(const Paths& paths) {
  for (const std::string* path : {&paths.root, &paths.state}) {
    TRY_CTX(make_private(*path), "cannot make Berth's directory");
  }
  TRY(check_owner(paths.root, "image store", "--root DIR"));
  return check_owner(paths.state, "state directory", "--state DIR, or XDG_RUNTIME_DIR");
}

Result<std::string> absolute_path(std::string_view path, std::string_view directory) {
  if (path.starts_with('/')) return std::string(path);
  if (!directory.starts_with('/')) {
    return make_error(Kind::not_found,
                      "find " + quote(path) + ": the working directory no longer exists",
                      "an absolute path, or cd to a directory that exists");
  }
  if (path == ".") return std::string(directory);
  return std::string(directory) + (directory.ends_with('/') ? "" : "/") + std::string(path);
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

std::string find_in_path(const Context& context, const std::string& name) {
  constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";
  std::string_view path = context.environment.get("PATH").value_or(kUsualPath);
  for (std::string_view directory : split(path, ':')) {
    if (!directory.starts_with('/')) continue;
    std::string program = std::string(directory) + "/" + name;
    if (sys::check_executable(program).ok()) return program;
  }
  return "";
}

}  // namespace berth::engine
