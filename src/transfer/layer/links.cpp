// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/links.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/tree.hpp"
#include "transfer/layer/rules.hpp"
#include "transfer/layer/tree_record.hpp"

namespace berth::transfer {
namespace {

constexpr int kEnterLinks = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr uint64_t kLinkSector = 512;  // of st_blocks
constexpr const char* kNewName = "link";

std::string layer_path(const std::string& layer) {
  return "layers/" + layer;
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_dev == other.st_dev && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec && one.st_mode == other.st_mode &&
         one.st_uid == other.st_uid && one.st_gid == other.st_gid;
}

/// Whether another link is impossible: too many links, a file of another user, another file system.
bool is_harmless(const Error& error) {
  return error.sys_errno == EMLINK || error.sys_errno == EPERM || error.sys_errno == EXDEV ||
         error.kind == Kind::not_found;
}

Result<void> make_marker(const sys::Fd& root, const std::string& layer, const char* name) {
  return sys::write_file(root, layer_path(layer) + "/" + name, "", 0600);
}

}  // namespace

Result<sys::Fd> open_in_layer(const sys::Fd& root, const std::string& layer,
                              const std::string& path) {
  sys::Fd here = TRY(sys::open_at(root, layer_path(layer) + "/fs", kEnterLinks));
  for (std::string_view name : split(path, '/')) {
    if (!name.empty()) here = TRY(sys::open_at(here, std::string(name), kEnterLinks));
  }
  return here;
}

Result<LayerLinks::Done> LayerLinks::replace(const std::string& layer,
                                             const std::vector<LinkPlan>& plans) {
  Done done;
  auto act = [&]() -> Result<void> { return replace_all(layer, plans, done); };
  auto user = image::with_idle_layer(store_, layer, act, own_);
  if (!user.ok() && user.error().kind == Kind::not_found) return done;  // removed meanwhile
  if (!user.ok()) return std::move(user).error();
  done.used = !user->empty();
  return done;
}

Result<void> LayerLinks::replace_all(const std::string& layer, const std::vector<LinkPlan>& plans,
                                     Done& done) {
  TRY(make_marker(root_, layer, image::kLinkedFile));
  TRY(make_marker(root_, layer, image::kLinkingFile));
  Times times;
  std::string marked;
  Result<void> result;
  for (const LinkPlan& plan : plans) {
    if (plan.from_layer != marked) {
      // Skips a source layer that was removed meanwhile.
      if (!make_marker(root_, plan.from_layer, image::kLinkedFile).ok()) continue;
      marked = plan.from_layer;
    }
    auto replaced = replace_file(layer, plan, times, done);
    if (replaced.ok() || is_harmless(replaced.error())) continue;
    result = std::move(replaced);
    break;
  }
  // Also after an error, so that only a killed process leaves other times.
  for (const auto& [path, time] : times) {
    sys::Fd directory = TRY(open_in_layer(root_, layer, path));
    TRY(sys::set_modified(directory, time, path));
  }
  TRY(sys::remove_entry(root_, layer_path(layer) + "/" + image::kLinkingFile));
  return result;
}

Result<void> LayerLinks::replace_file(const std::string& layer, const LinkPlan& plan, Times& times,
                                      Done& done) {
  std::string parent = parent_of(plan.path);
  std::string name = name_of(plan.path);
  sys::Fd from = TRY(open_in_layer(root_, plan.from_layer, parent));
  sys::Fd to = TRY(open_in_layer(root_, layer, parent));
  auto source = TRY(sys::stat_entry(from, name));
  auto target = TRY(sys::stat_entry(to, name));
  if (!source || !target || !is_same(*source, plan.from) || !is_same(*target, plan.to)) return {};
  struct stat status = TRY(sys::stat_fd(to, parent));
  TRY(sys::remove_entry(staged_.fd(), kNewName));
  TRY(sys::make_hard_link(from, name, staged_.fd(), kNewName));
  times.try_emplace(
      parent, sys::FileTime{status.st_mtim.tv_sec, static_cast<uint32_t>(status.st_mtim.tv_nsec)});
  TRY(sys::rename(staged_.fd(), kNewName, to, name));
  ++done.files;
  // Otherwise another layer still has the old file.
  if (target->st_nlink == 1) done.bytes += static_cast<uint64_t>(target->st_blocks) * kLinkSector;
  return {};
}

Result<void> LayerLinks::mend(const std::string& layer) {
  auto set_times = [&]() -> Result<void> {
    std::string path = layer_path(layer);
    constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
    sys::Fd record = TRY(sys::open_at(root_, path + "/" + kTreeFile, kRead));
    for (const auto& [name, entry] : TRY(read_tree_record(record))) {
      if (!S_ISDIR(entry.mode)) continue;
      sys::Fd directory = TRY(open_in_layer(root_, layer, name));
      struct stat status = TRY(sys::stat_fd(directory, name));
      if (status.st_mtim.tv_sec == entry.seconds && status.st_mtim.tv_nsec == entry.nanoseconds) {
        continue;
      }
      TRY(sys::set_modified(directory, {entry.seconds, entry.nanoseconds}, name));
    }
    return sys::remove_entry(root_, path + "/" + image::kLinkingFile);
  };
  auto user = image::with_idle_layer(store_, layer, set_times, own_);
  if (user.ok() || user.error().kind == Kind::not_found) return {};
  return std::move(user).error();
}

}  // namespace berth::transfer
