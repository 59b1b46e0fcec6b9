// SPDX-License-Identifier: Apache-2.0
#include "runtime/target.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/namespace.hpp"
#include "sys/node.hpp"

namespace berth::runtime {
namespace {

constexpr int kMaxLinks = 40;

Result<sys::Fd> make_missing(const sys::Fd& parent, const std::string& name, TargetType type) {
  if (type == TargetType::directory) {
    TRY(sys::make_new_directory(parent, name, 0755));
    return sys::open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  }
  return sys::open_at(parent, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0644);
}

// Walks component by component from handles that are inside, so that neither "..", nor a link, nor
// somebody who renames directories meanwhile can lead out of `root`.
Result<sys::Fd> make_in_root(const sys::Fd& root, const std::string& path, TargetType type) {
  std::vector<sys::Fd> parents;
  parents.push_back(TRY(sys::open_at(root, ".", O_PATH | O_DIRECTORY)));
  std::vector<std::string> pending;
  auto push = [&](std::string_view text) {
    auto parts = split(text, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (!part->empty() && *part != ".") pending.emplace_back(*part);
    }
  };
  push(path);
  int links = 0;
  while (!pending.empty()) {
    std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == "..") {
      if (parents.size() > 1) parents.pop_back();
      continue;
    }
    TargetType wanted = pending.empty() ? type : TargetType::directory;
    auto entry = TRY(sys::stat_entry(parents.back(), name));
    if (!entry) {
      parents.push_back(TRY(make_missing(parents.back(), name, wanted)));
    } else if (S_ISLNK(entry->st_mode)) {
      // The text of a magic link says where something is outside; here it would be read as a path.
      if (TRY(sys::file_system_type(parents.back(), path)) == PROC_SUPER_MAGIC) {
        return make_error(Kind::denied, "open " + quoted(path) + ": no place to make anything in");
      }
      if (++links > kMaxLinks) return sys_error(ELOOP, "open " + quoted(path));
      std::string text = TRY(sys::read_link(parents.back(), name));
      if (text.starts_with('/')) parents.resize(1);
      push(text);
    } else {
      int flags = O_PATH | O_NOFOLLOW | (pending.empty() ? 0 : O_DIRECTORY);
      parents.push_back(TRY(sys::open_at(parents.back(), name, flags)));
    }
  }
  return std::move(parents.back());
}

}  // namespace

Result<sys::Fd> open_target(const sys::Fd& root, const std::string& path, TargetType type) {
  auto found = sys::open_in_root(root, path, O_PATH);
  if (found.ok() || found.error().kind != Kind::not_found) return found;
  return make_in_root(root, path, type);
}

Result<sys::Fd> open_exact_target(const sys::Fd& root, const std::string& path) {
  auto found = sys::open_in_root(root, path, O_PATH | O_NOFOLLOW);
  if (!found.ok() && found.error().kind == Kind::not_found) {
    return make_in_root(root, path, TargetType::directory);
  }
  if (!found.ok()) return found;
  struct stat info = TRY(sys::stat_fd(*found, path));
  if (S_ISLNK(info.st_mode)) {
    return make_error(Kind::denied, quoted(path) + " is a symbolic link in the image");
  }
  if (!S_ISDIR(info.st_mode)) {
    return make_error(Kind::denied, quoted(path) + " is not a directory in the image");
  }
  return found;
}

Result<Parents::Place> Parents::open(const sys::Fd& root, const std::string& path) {
  size_t slash = path.rfind('/');
  std::string name = path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") {
    return make_error(Kind::usage, "make " + quoted(path) + ": not a name");
  }
  std::string directory = slash == 0 ? "/" : path.substr(0, slash);
  if (!directory_ || directory != path_) {
    directory_ = TRY(open_target(root, directory, TargetType::directory));
    path_ = std::move(directory);
  }
  return Place{directory_, std::move(name)};
}

}  // namespace berth::runtime
