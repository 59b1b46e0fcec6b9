// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/tree_extract.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/tree.hpp"
#include "transfer/layer/rules.hpp"

namespace berth::transfer {
namespace {

using Type = TarEntry::Type;
using Parts = std::vector<std::string>;

constexpr int kExtractDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr size_t kMaxExtractDepth = 512;
constexpr uint64_t kMaxTreeId = 0xffff'fffe;  // 2³²−1 means "leave as it is" to chown(2)
constexpr mode_t kSetId = S_ISUID | S_ISGID;

std::string shown(const Parts& parts) {
  return "/" + join(parts, "/");
}

bool is_all_zeros(std::string_view bytes) {
  return bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

sys::FileTime time_of(const TarEntry& entry) {
  return {entry.mtime, entry.mtime_nanoseconds};
}

}  // namespace

TreeExtractor::TreeExtractor(TreePlace place, TreeExtractOptions options)
    : place_(std::move(place)), options_(std::move(options)) {}

void TreeExtractor::leave_out(const std::string& what, const std::string& path) {
  auto& [first, count] = left_out_[what];
  if (count++ == 0) first = path;
}

// Records the device, as hard links to it may follow.
Result<void> TreeExtractor::leave_out_device(const TarEntry& entry) {
  leave_out("devices", entry.path);
  devices_left_out_.insert(TRY(parts_of(entry.path)));
  return {};
}

// "./usr//bin/" → usr, bin. A leading '/' means the destination, as with docker.
Result<Parts> TreeExtractor::parts_of(const std::string& path) const {
  Parts parts;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse_entry(path, "its path goes up with '..'");
    if (part.find('\0') != part.npos) return refuse_entry(path, "its path holds a NUL");
    if (parts.size() == kMaxExtractDepth)
      return refuse_entry(path.substr(0, 100), "its path is too deep");
    parts.emplace_back(part);
  }
  return parts;
}

Result<sys::Fd> TreeExtractor::enter_beneath(const Parts& directories, Missing missing) {
  sys::Fd here = TRY(sys::open_at(place_.directory, ".", kExtractDirectory));
  for (const std::string& name : directories) {
    auto below = sys::open_at(here, name, kExtractDirectory);
    bool absent = !below.ok() && below.error().kind == Kind::not_found;
    if (absent && missing == Missing::made) {
      TRY(sys::make_directory(here, name, 0755));
      below = sys::open_at(here, name, kExtractDirectory);
    }
    here = TRY_CTX(std::move(below), "cannot enter " + quote(shown(directories)));
  }
  return here;
}

Result<sys::Fd> TreeExtractor::enter_in_root(const Parts& directories, Missing missing) {
  std::string path = place_.path;
  auto opened = sys::open_in_root(place_.root, path + shown(directories), O_RDONLY | O_DIRECTORY);
  bool absent = !opened.ok() && opened.error().kind == Kind::not_found;
  if (!absent || missing == Missing::error) return opened;
  sys::Fd here = TRY(sys::open_in_root(place_.root, path, O_RDONLY | O_DIRECTORY));
  for (const std::string& name : directories) {
    path += "/" + name;
    auto below = sys::open_in_root(place_.root, path, O_RDONLY | O_DIRECTORY);
    if (!below.ok() && below.error().kind == Kind::not_found) {
      TRY(sys::make_directory(here, name, 0755));
      below = sys::open_at(here, name, kExtractDirectory);
    }
    here = TRY(std::move(below));
  }
  return here;
}

Result<sys::Fd> TreeExtractor::enter(const Parts& directories) {
  if (!last_ || directories != last_path_) {
    last_ = place_.root ? TRY(enter_in_root(directories, Missing::made))
                        : TRY(enter_beneath(directories, Missing::made));
    last_path_ = directories;
  }
  return sys::duplicate(last_);
}

mode_t TreeExtractor::mode_of(const TarEntry& entry) const {
  mode_t mode = entry.mode & 07777;
  // On the host, a file of the container's root may belong to the machine's root, and all users
  // there could use its set-id bits.
  bool strip = options_.trust == image::Trust::outside && entry.type == Type::file;
  return strip ? mode & ~kSetId : mode;
}

std::pair<uid_t, gid_t> TreeExtractor::owner_of(const TarEntry& entry) const {
  if (options_.owners == image::Owners::root) return {0, 0};
  return {static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid)};
}

// In a user namespace an id may be unmapped; with a single id, all files belong to the caller
// anyway.
Result<void> TreeExtractor::checked(Result<void> chown) {
  if (chown.ok()) return {};
  bool unmapped = chown.error().sys_errno == EINVAL || chown.error().sys_errno == EPERM;
  if (!unmapped) return chown;
  leave_out("owners that cannot be expressed here", chown.error().what);
  return {};
}

Result<void> TreeExtractor::describe(const sys::Fd& fd, const TarEntry& entry) {
  auto [uid, gid] = owner_of(entry);
  TRY(checked(sys::change_owner(fd, uid, gid, entry.path)));
  mode_t mode = mode_of(entry);
  if (mode != (entry.mode & 07777)) leave_out("set-id bits", entry.path);
  TRY(sys::change_mode(fd, mode, entry.path));
  for (const auto& [key, value] : entry.xattrs) {
    bool user = key.starts_with("user.") && !key.starts_with("user.overlay.");
    bool capability = key == "security.capability" && options_.trust == image::Trust::inside;
    if (!user && !capability) continue;
    if (!sys::write_attribute(fd, key, value).ok()) leave_out("attributes", entry.path);
  }
  return {};
}

Result<void> TreeExtractor::make_file(const sys::Fd& parent, const std::string& name,
                                      const TarEntry& entry, TarReader& tar) {
  sys::Fd file = TRY(sys::open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  uint64_t size = 0;
  bool ends_in_hole = false;
  while (true) {
    uint64_t hole = tar.skip_hole();
    std::string_view part = TRY(tar.content());
    size += hole;
    ends_in_hole = part.empty() ? ends_in_hole || hole > 0 : is_all_zeros(part);
    if (part.empty()) break;
    // A sparse file of a container may be larger than the disk here.
    if (!ends_in_hole) TRY(sys::write_at(file, size, part, entry.path));
    size += part.size();
  }
  if (ends_in_hole) TRY(sys::truncate(file, size, entry.path));
  TRY(describe(file, entry));
  TRY(sys::set_modified(file, time_of(entry), entry.path));
  return sys::close_checked(std::move(file), entry.path);
}

Result<void> TreeExtractor::make_directory(const sys::Fd& parent, const std::string& name,
                                           const TarEntry& entry) {
  TRY(sys::make_directory(parent, name, 0700));
  sys::Fd directory = TRY(sys::open_at(parent, name, kExtractDirectory));
  return describe(directory, entry);
}

Result<void> TreeExtractor::make_link(const sys::Fd& parent, const std::string& name,
                                      const TarEntry& entry) {
  if (entry.type == Type::hard_link) {
    Parts target = TRY(parts_of(entry.link));
    if (target.empty()) return refuse_entry(entry.path, "it is a link to a directory");
    if (devices_left_out_.contains(target)) return leave_out_device(entry);
    std::string last = target.back();
    target.pop_back();
    sys::Fd directory = TRY(enter(target));
    return sys::make_hard_link(directory, last, parent, name);
  }
  TRY(sys::make_symlink(entry.link, parent, name));
  sys::Fd link = TRY(sys::hold_made(parent, name, S_IFLNK));
  auto [uid, gid] = owner_of(entry);
  TRY(checked(sys::change_owner(link, uid, gid, entry.path)));
  return sys::set_modified(link, time_of(entry), entry.path);
}

Result<void> TreeExtractor::make_device(const sys::Fd& parent, const std::string& name,
                                        const TarEntry& entry) {
  bool fifo = entry.type == Type::fifo;
  if (!fifo && options_.trust == image::Trust::outside) {
    return leave_out_device(entry);
  }
  if (entry.device_major > 0xfff || entry.device_minor > 0xfffff) {
    return refuse_entry(entry.path, "no such device number");
  }
  mode_t kind = fifo ? S_IFIFO : entry.type == Type::character_device ? S_IFCHR : S_IFBLK;
  // Made with mode 0, so that no process can open the device before its owner and mode are set.
  auto made = sys::make_node(parent, name, kind, static_cast<unsigned>(entry.device_major),
                             static_cast<unsigned>(entry.device_minor));
  if (!made.ok() && made.error().kind == Kind::denied) {
    return leave_out_device(entry);
  }
  TRY(std::move(made));
  dev_t device =
      makedev(static_cast<unsigned>(entry.device_major), static_cast<unsigned>(entry.device_minor));
  sys::Fd node = TRY(sys::hold_made(parent, name, kind, device));
  auto [uid, gid] = owner_of(entry);
  TRY(checked(sys::change_owner(node, uid, gid, entry.path)));
  return sys::change_mode(node, mode_of(entry), entry.path);
}

/// Removes the entry in the place of a member; an existing directory stays if the member is a
/// directory.
Result<void> TreeExtractor::make_room(const sys::Fd& parent, const std::string& name,
                                      const TarEntry& entry) {
  auto there = TRY(sys::stat_entry(parent, name));
  if (!there) return {};
  bool is_directory = S_ISDIR(there->st_mode);
  bool wants_directory = entry.type == Type::directory;
  if (is_directory && wants_directory) return {};
  if (is_directory != wants_directory) {
    return make_error(
        Kind::usage, std::string("cannot overwrite ") +
                         (is_directory ? "directory " : "non-directory ") + quote(name) + " with " +
                         (wants_directory ? "directory " : "non-directory ") + quote(entry.path));
  }
  return sys::remove_entry(parent, name);
}

Result<void> TreeExtractor::make(const sys::Fd& parent, const std::string& name,
                                 const TarEntry& entry, TarReader& tar) {
  switch (entry.type) {
    case Type::file:
      return make_file(parent, name, entry, tar);
    case Type::directory:
      return make_directory(parent, name, entry);
    case Type::hard_link:
    case Type::symlink:
      return make_link(parent, name, entry);
    case Type::character_device:
    case Type::block_device:
    case Type::fifo:
      return make_device(parent, name, entry);
  }
  return {};
}

Result<void> TreeExtractor::add(const TarEntry& entry, TarReader& tar) {
  Parts parts = TRY(parts_of(entry.path));
  if (parts.empty()) return {};  // the destination itself stays as it is
  if (options_.owners == image::Owners::archive &&
      (entry.uid > kMaxTreeId || entry.gid > kMaxTreeId)) {
    return refuse_entry(entry.path, "its owner's id is too large");
  }
  Parts directories(parts.begin(), parts.end() - 1);
  sys::Fd parent = TRY(enter(directories));
  TRY(make_room(parent, parts.back(), entry));
  TRY(make(parent, parts.back(), entry, tar));
  if (entry.type == Type::directory) directories_.push_back({std::move(parts), time_of(entry)});
  return {};
}

Result<void> TreeExtractor::finish() {
  // The innermost first, so that setting a time does not change the time of a directory above it.
  for (auto item = directories_.rbegin(); item != directories_.rend(); ++item) {
    auto directory = place_.root ? enter_in_root(item->path, Missing::error)
                                 : enter_beneath(item->path, Missing::error);
    if (!directory.ok()) continue;  // removed meanwhile
    TRY(sys::set_modified(*directory, item->modified, shown(item->path)));
  }
  for (const auto& [what, seen] : left_out_) {
    std::string more = seen.second > 1 ? " and " + std::to_string(seen.second - 1) + " more" : "";
    options_.on_warning(what + " of " + quote(seen.first) + more + ", ignoring");
  }
  return {};
}

}  // namespace berth::transfer
