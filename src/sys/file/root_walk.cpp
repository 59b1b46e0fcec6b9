// SPDX-License-Identifier: Apache-2.0
#include "sys/file/root_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxLinks = 40;  // as in the kernel: MAXSYMLINKS

}  // namespace

Result<RootWalk> RootWalk::begin(const Fd& root, std::string_view path) {
  RootWalk walk;
  walk.path_ = path;
  Fd start = TRY(open_at(root, ".", O_PATH | O_DIRECTORY));
  walk.enter(std::move(start));
  walk.push(path);
  return walk;
}

std::optional<std::string> RootWalk::next() {
  while (!pending_.empty()) {
    std::string name = std::move(pending_.back());
    pending_.pop_back();
    if (name != "..") return name;
    if (parents_.size() > 1) parents_.pop_back();
  }
  return std::nullopt;
}

Result<void> RootWalk::follow(const std::string& name) {
  if (++links_ > kMaxLinks) return sys_error(ELOOP, "open " + quote(path_));
  std::string text = TRY(read_link(directory(), name));
  if (text.starts_with('/')) parents_.resize(1);
  push(text);
  return {};
}

Result<std::string> real_path_in_root(const Fd& root, const std::string& path) {
  RootWalk walk = TRY(RootWalk::begin(root, path));
  std::vector<std::string> names;
  bool is_missing = false;  // this component and deeper ones do not exist
  size_t missing_below = 0;
  while (auto name = walk.next()) {
    names.resize(walk.depth());
    if (walk.depth() <= missing_below) is_missing = false;
    std::optional<struct stat> entry;
    if (!is_missing) entry = TRY(stat_entry(walk.directory(), *name));
    if (entry && S_ISLNK(entry->st_mode)) {
      TRY(walk.follow(*name));
      continue;
    }
    names.push_back(*name);
    Fd here;
    if (entry && S_ISDIR(entry->st_mode)) {
      here = TRY(open_at(walk.directory(), *name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    } else {
      if (!is_missing) missing_below = walk.depth();
      is_missing = true;
      here = TRY(duplicate(walk.directory()));
    }
    walk.enter(std::move(here));
  }
  names.resize(walk.depth());
  return "/" + join(names, "/");
}

void RootWalk::push(std::string_view path) {
  auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") pending_.emplace_back(*part);
  }
}

}  // namespace berth::sys
