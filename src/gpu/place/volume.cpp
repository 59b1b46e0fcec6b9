// SPDX-License-Identifier: Apache-2.0
#include "gpu/place/volume.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "gpu/place/publish.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"
#include "sys/process/stream.hpp"

namespace berth::gpu {
namespace {

constexpr std::string_view kVolumePrefix = "nvidia_driver_";
bool is_in_volume(const Grant& grant, const GrantedFile& file) {
  return file.container_path.starts_with(grant.directory + "/");
}

Result<void> copy_file(const sys::Fd& source, const sys::Fd& directory, const std::string& path,
                       mode_t mode) {
  auto target = TRY(sys::open_at(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY(sys::copy_rest(source, target, path));
  TRY(sys::change_mode(target, mode, path));
  return sys::close_checked(std::move(target), path);
}

Result<void> add_file(const GrantedFile& file, const sys::Fd& directory, const std::string& path) {
  // A link only works on one file system, and for files that are ours.
  if (sys::make_hard_link(sys::cwd(), file.host_path, directory, path).ok()) return {};
  auto source = TRY(sys::open_at(sys::cwd(), file.host_path, O_RDONLY | O_NONBLOCK));
  struct stat info = TRY(sys::stat_fd(source, file.host_path));
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::io, "driver file " + quote(file.host_path) + " is not a file");
  }
  return copy_file(source, directory, path, info.st_mode & 0555);
}

Result<void> fill_volume(const Grant& grant, const sys::Fd& directory) {
  std::set<std::string> made;
  for (const GrantedFile& file : grant.files) {
    if (!is_in_volume(grant, file)) continue;
    std::string path = file.container_path.substr(grant.directory.size() + 1);
    TRY(make_parents(directory, path, made));
    TRY_CTX(add_file(file, directory, path), "cannot put " + quote(file.host_path) + " into it");
  }
  for (const GrantedLink& link : grant.links) {
    std::string path = link.path.substr(grant.directory.size() + 1);
    TRY(make_parents(directory, path, made));
    auto linked = sys::make_symlink(link.target, directory, path);
    if (!linked.ok() && linked.error().kind != Kind::exists) return linked;
  }
  return {};
}

/// Whether a process that we may examine has something of `name` mounted.
bool is_mounted(const std::string& name) {
  auto processes = sys::list_directory(sys::cwd(), "/proc");
  if (!processes.ok()) return true;
  const std::string needle = "/" + name + "/";
  return std::ranges::any_of(*processes, [&](const std::string& process) {
    if (process.find_first_not_of("0123456789") != std::string::npos) return false;
    auto table = sys::read_file_if_exists(sys::cwd(), "/proc/" + process + "/mountinfo");
    return table.ok() && *table && (*table)->find(needle) != std::string::npos;
  });
}

void remove_others(const sys::Fd& volumes, const std::string& current,
                   const std::function<bool(const std::string& name)>& is_kept) {
  auto names = sys::list_directory(volumes, ".");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kVolumePrefix) || name == current || is_mounted(name)) continue;
    if (is_kept && is_kept(name)) continue;
    ignore(sys::remove_tree(volumes, name));  // the next start of another version tries again
  }
}

}  // namespace

Result<std::string> find_or_make_volume(
    const Grant& grant, const std::string& volume_dir,
    const std::function<bool(const std::string& name)>& is_kept) {
  std::string content;
  for (const GrantedFile& file : grant.files) {
    if (!is_in_volume(grant, file)) continue;
    struct stat info = TRY(stat_driver_file(file.host_path));
    content += fmt::format("{}\t{}\t{}:{}:{}:{}\n", file.container_path, file.host_path,
                           info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec);
  }
  for (const GrantedLink& link : grant.links) content += link.path + "\t" + link.target + "\n";
  std::string version = std::string(kVolumePrefix) + grant.driver_version;
  std::string key = key_of_text(content);
  std::string path = volume_dir + "/" + version + "/" + key;
  if (TRY(sys::stat_entry(sys::cwd(), path))) return path;
  std::string context = "cannot make volume " + quote(version);
  TRY_CTX(sys::make_directories(sys::cwd(), volume_dir + "/" + version, 0700), context);
  auto volumes = TRY(sys::open_at(sys::cwd(), volume_dir, O_RDONLY | O_DIRECTORY));
  auto parent = TRY(sys::open_at(volumes, version, O_RDONLY | O_DIRECTORY));
  auto fill = [&](const sys::Fd& directory) { return fill_volume(grant, directory); };
  TRY_CTX(publish_directory(parent, key, fill), context);
  remove_others(volumes, version, is_kept);
  return path;
}

}  // namespace berth::gpu
