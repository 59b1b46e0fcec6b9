// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.hpp"
#include "facts/file_facts.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/io_at.hpp"
#include "sys/mode.hpp"
#include "sys/node.hpp"

namespace berth::transfer {
namespace {

using Type = TarEntry::Type;

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kWhiteoutMeta = ".wh..wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr int kMaxLinks = 40;
constexpr size_t kFirstBytes = 4;
constexpr uint64_t kMaxId = 0xffff'fffe;  // 2³²−1 means "leave as it is" to chown(2)

Error refuse(const std::string& path, std::string reason) {
  return make_error(Kind::corrupt, "entry " + quoted(path) + ": " + std::move(reason));
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}
std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}
std::string join_path(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}
bool is_below(std::string_view path, std::string_view directory) {
  return directory.empty() || path == directory ||
         (path.starts_with(directory) && path[directory.size()] == '/');
}

/// Attributes that an image may bring. All others belong to the host: overlay's own marks, labels
/// of its security modules, access lists of its file systems.
bool may_keep(std::string_view key) {
  if (key == "security.capability") return true;
  return key.starts_with("user.") && !key.starts_with("user.overlay.") && key.size() <= 255;
}

}  // namespace

Result<LayerWriter> LayerWriter::make(const sys::Fd& root, const UnpackOptions& options) {
  LayerWriter writer;
  writer.options_ = &options;
  writer.own_uid_ = sys::effective_uid();
  writer.own_gid_ = sys::effective_gid();
  writer.umask_ = TRY(sys::current_umask());
  writer.root_path_ = TRY(sys::read_link(sys::cwd(), sys::fd_path(root)));
  sys::Fd own = TRY(sys::open_at(root, ".", kDirectory));
  writer.levels_.push_back({"", std::move(own)});
  // A store below a set-group-id directory would give every file the group of that directory.
  TRY(sys::change_owner(writer.levels_[0].fd, writer.own_uid_, writer.own_gid_, "."));
  TRY(sys::change_mode(writer.levels_[0].fd, 0700, "."));
  writer.directories_[""] = {};
  return writer;
}

void LayerWriter::warn(const std::string& text) const {
  if (options_->on_warning) options_->on_warning(text);
}

/// "./usr//bin/" → "usr/bin". A leading '/' means the layer's root, as in docker.
Result<std::string> LayerWriter::clean_path(const std::string& path) const {
  std::string clean;
  size_t depth = 0;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(path, "its path goes up with '..'");
    if (part.find('\0') != part.npos) return refuse(path, "its path holds a NUL");
    if (part.size() > 255) return refuse(path, "a part of its path is longer than 255 bytes");
    if (++depth > options_->limits.path_depth) {
      return refuse(path.substr(0, 100), "its path is deeper than " +
                                             std::to_string(options_->limits.path_depth) +
                                             " directories");
    }
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  if (clean.size() > options_->limits.path_length) {
    return refuse(path.substr(0, 100), "its path is longer than " +
                                           std::to_string(options_->limits.path_length) + " bytes");
  }
  return clean;
}

/// Makes `levels_` end with `directory`, creating what is missing on the way.
Result<void> LayerWriter::enter(std::string directory) {
  while (!is_below(directory, levels_.back().path)) levels_.pop_back();
  for (int links = 0; directory != levels_.back().path;) {
    size_t begin = levels_.back().path.empty() ? 0 : levels_.back().path.size() + 1;
    std::string name = directory.substr(begin, directory.find('/', begin) - begin);
    std::string before = directory;
    TRY(enter_child(name, directory));
    if (directory != before && ++links > kMaxLinks) {
      return refuse(current_, "its path goes through too many symbolic links");
    }
  }
  return {};
}

/// One step down. When the child is a link, `directory` is rewritten to where it leads, and the
/// walk begins again from the root.
Result<void> LayerWriter::enter_child(const std::string& name, std::string& directory) {
  const sys::Fd& here = levels_.back().fd;
  std::string path = join_path(levels_.back().path, name);
  auto fd = sys::open_at(here, name, kDirectory);
  if (fd.ok()) {
    levels_.push_back({path, std::move(*fd)});
    return {};
  }
  auto entry = TRY(sys::stat_entry(here, name));
  if (entry && S_ISDIR(entry->st_mode)) return std::move(fd).error();
  if (entry && S_ISLNK(entry->st_mode)) {
    auto target = sys::open_beneath(levels_[0].fd, path, O_RDONLY | O_DIRECTORY);
    if (!target.ok() && target.error().sys_errno == EXDEV) {
      return refuse(current_, "it goes through the symbolic link " + quoted(path) +
                                  ", which leads outside the layer");
    }
    if (!target.ok()) {
      return refuse(current_, "it goes through the symbolic link " + quoted(path) +
                                  ", which leads to no directory of the layer");
    }
    std::string real = TRY(real_path(*target));
    std::string rest = directory.substr(path.size());
    directory = real.empty() ? rest.substr(std::min<size_t>(1, rest.size())) : real + rest;
    levels_.resize(1);
    return {};
  }
  bool whiteout = TRY(is_whiteout(here, name));
  if (entry && !whiteout) return refuse(current_, quoted(path) + " is not a directory");
  // Not described by an entry of its own, or not yet.
  if (whiteout) TRY(sys::remove_entry(here, name));
  TRY(sys::make_new_directory(here, name, 0700));
  directories_[path].opaque = whiteout;
  sys::Fd made = TRY(sys::open_at(here, name, kDirectory));
  levels_.push_back({path, std::move(made)});
  return {};
}

/// Where a directory of this layer lies below the root, without links.
Result<std::string> LayerWriter::real_path(const sys::Fd& directory) const {
  std::string path = TRY(sys::read_link(sys::cwd(), sys::fd_path(directory)));
  path.erase(0, std::min(root_path_.size() + 1, path.size()));
  return path;
}

Result<LayerWriter::Place> LayerWriter::place(const std::string& path) {
  TRY(enter(parent_of(path)));
  const Level& level = levels_.back();
  std::string name = name_of(path);
  return Place{&level.fd, name, join_path(level.path, name)};
}

Result<bool> LayerWriter::is_whiteout(const sys::Fd& directory, const std::string& name) const {
  auto entry = TRY(sys::stat_entry(directory, name));
  return entry && S_ISCHR(entry->st_mode) && entry->st_rdev == 0;
}

/// A later entry of the same name wins.
Result<void> LayerWriter::displace(const Place& place) {
  TRY(sys::remove_tree(*place.parent, place.name));
  if (options_->scan != nullptr) options_->scan->remove(place.path);
  auto first = directories_.lower_bound(place.path);
  while (first != directories_.end() && first->first.starts_with(place.path)) {
    first = is_below(first->first, place.path) ? directories_.erase(first) : std::next(first);
  }
  return {};
}

bool LayerWriter::needs_owner(uint64_t uid, uint64_t gid) const {
  return options_->ownership == image::Ownership::full && (uid != own_uid_ || gid != own_gid_);
}

/// With a single id every file belongs to the caller: a set-id bit that meant somebody else would
/// mean the caller then.
uint32_t LayerWriter::usable_mode(const TarEntry& entry) const {
  uint32_t mode = entry.mode;
  if (options_->ownership == image::Ownership::single) {
    if (entry.uid != 0) mode &= ~04000u;
    if (entry.gid != 0 && entry.type != Type::directory) mode &= ~02000u;
  }
  return mode;
}

LayerWriter::DirectoryFacts LayerWriter::facts_of(const TarEntry& entry) const {
  DirectoryFacts facts;
  facts.mode = usable_mode(entry);
  facts.uid = static_cast<uint32_t>(entry.uid);
  facts.gid = static_cast<uint32_t>(entry.gid);
  facts.has_time = true;
  facts.modified = {entry.mtime, entry.mtime_nanoseconds};
  facts.xattrs = entry.xattrs;
  return facts;
}

Result<void> LayerWriter::set_attributes(
    const sys::Fd& fd, const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& xattrs) {
  for (const auto& [key, value] : xattrs) {
    if (!may_keep(key)) continue;
    if (value.size() > 65536) return refuse(path, "an attribute is larger than 64 KiB");
    auto written = sys::write_attribute(fd, key, value);
    if (written.ok()) continue;
    bool tolerable = written.error().kind == Kind::denied ||
                     written.error().kind == Kind::unsupported ||
                     written.error().sys_errno == EINVAL;
    if (!tolerable) return written;
    if (attributes_left_out_++ == 0) first_attribute_ = key + " of " + path;
  }
  return {};
}

Result<void> LayerWriter::add(const TarEntry& entry, TarReader& tar) {
  if (++entries_ > options_->limits.entries) {
    return make_error(Kind::corrupt, "the layer has more than " +
                                         std::to_string(options_->limits.entries) + " entries");
  }
  if (entry.uid > kMaxId || entry.gid > kMaxId) {
    return refuse(entry.path, "its owner " + std::to_string(entry.uid) + ":" +
                                  std::to_string(entry.gid) + " is no valid id");
  }
  std::string path = TRY(clean_path(entry.path));
  current_ = path;
  if (path.empty()) return describe_root(entry);

  std::string name = name_of(path);
  std::string directory = parent_of(path);
  for (std::string_view part : split(directory, '/')) {
    if (part.starts_with(kWhiteoutMeta)) return {};  // what AUFS kept for itself
    if (part.starts_with(kWhiteout)) return refuse(entry.path, "it lies below a whiteout");
  }
  auto made = [&]() -> Result<void> {
    Place place = TRY(this->place(path));
    if (name.starts_with(kWhiteout)) return add_whiteout(place);
    switch (entry.type) {
      case Type::file:
        return add_file(place, entry, tar);
      case Type::directory:
        return add_directory(place, entry);
      case Type::symlink:
        return add_symlink(place, entry);
      case Type::hard_link:
        return add_hard_link(place, entry);
      case Type::character_device:
      case Type::block_device:
      case Type::fifo:
        return add_node(place, entry);
    }
    return {};
  }();
  if (!made.ok()) return explain(std::move(made).error(), path);
  return {};
}

/// System errors name the last part of a path only, and some need a word about what to do.
Error LayerWriter::explain(Error error, const std::string& path) const {
  if (error.sys_errno == 0) return error;
  if (error.sys_errno == EINVAL && error.what.starts_with("change the owner")) {
    return make_error(
        Kind::unsupported,
        "entry " + quoted(path) + ": this user namespace has no such id: " + error.what,
        "a larger range for this user in /etc/subuid and /etc/subgid");
  }
  if (error.sys_errno == ENOSPC || error.sys_errno == EDQUOT) {
    error.hint = "free space where the store lies, or another --root";
  }
  return std::move(error).with_context("cannot unpack " + quoted(path));
}

Result<void> LayerWriter::describe_root(const TarEntry& entry) {
  if (entry.type != Type::directory) return refuse(entry.path, "the root is a directory");
  bool opaque = directories_[""].opaque;
  directories_[""] = facts_of(entry);
  directories_[""].opaque = opaque;
  return {};
}

/// Whiteouts concern the layers below alone, wherever they stand in the archive (image-spec
/// layer.md: "Whiteout files MUST only apply to resources in lower/parent layers").
Result<void> LayerWriter::add_whiteout(const Place& place) {
  if (place.name == kOpaque) {
    directories_[levels_.back().path].opaque = true;
    return {};
  }
  if (place.name.starts_with(kWhiteoutMeta)) return {};
  std::string hidden = place.name.substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..") {
    return refuse(place.path, "a whiteout of " + quoted(hidden) + " is no whiteout of a name");
  }
  auto entry = TRY(sys::stat_entry(*place.parent, hidden));
  if (!entry) return sys::make_node(*place.parent, hidden, S_IFCHR, 0, 0);
  // This layer's own entry hides the lower one; a directory would be merged with it.
  if (S_ISDIR(entry->st_mode)) {
    directories_[join_path(levels_.back().path, hidden)].opaque = true;
  }
  return {};
}

/// By the handle that wrote it: its pages are at hand, and nobody can have put another there.
void LayerWriter::scan(const sys::Fd& fd, const Place& place, std::string_view first_bytes) {
  if (options_->scan == nullptr || !facts::begins_like_elf(first_bytes)) return;
  options_->scan->add(place.path, [&](uint64_t offset, size_t length) {
    return sys::read_at(fd, offset, length, place.name);
  });
}

Result<void> LayerWriter::add_file(const Place& place, const TarEntry& entry, TarReader& tar) {
  constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  uint32_t mode = usable_mode(entry);
  auto opened = sys::open_at(*place.parent, place.name, kNew, mode & 0777);
  if (!opened.ok() && opened.error().kind == Kind::exists) {
    TRY(displace(place));
    opened = sys::open_at(*place.parent, place.name, kNew, mode & 0777);
  }
  if (!opened.ok()) return std::move(opened).error();
  sys::Fd fd = std::move(*opened);
  std::string first_bytes;
  while (true) {
    std::string_view part = TRY(tar.content());
    if (part.empty()) break;
    if (first_bytes.size() < kFirstBytes) first_bytes += part.substr(0, kFirstBytes);
    TRY(sys::write_all(fd, part, place.name));
  }
  bytes_ += entry.size;
  scan(fd, place, first_bytes);
  // chown(2) clears set-id bits and capabilities, so it comes first.
  if (needs_owner(entry.uid, entry.gid)) {
    TRY(sys::change_owner(fd, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid),
                          place.name));
  }
  if ((mode & 07000) != 0 || (mode & umask_) != 0) TRY(sys::change_mode(fd, mode, place.name));
  TRY(set_attributes(fd, place.path, entry.xattrs));
  TRY(sys::set_modified(fd, {entry.mtime, entry.mtime_nanoseconds}, place.name));
  return sys::close_checked(std::move(fd), place.name);
}

Result<void> LayerWriter::add_directory(const Place& place, const TarEntry& entry) {
  DirectoryFacts facts = facts_of(entry);
  auto made = sys::make_new_directory(*place.parent, place.name, 0700);
  if (!made.ok()) {
    if (made.error().kind != Kind::exists) return made;
    auto known = directories_.find(place.path);
    if (known != directories_.end()) {
      facts.opaque = known->second.opaque;
    } else {
      facts.opaque = TRY(is_whiteout(*place.parent, place.name));
      TRY(displace(place));
      TRY(sys::make_new_directory(*place.parent, place.name, 0700));
    }
  }
  directories_[place.path] = std::move(facts);
  return {};
}

/// Owner and time of what has no descriptor.
Result<void> LayerWriter::set_unopened(const Place& place, const TarEntry& entry) {
  if (needs_owner(entry.uid, entry.gid)) {
    auto owned = sys::change_owner_at(*place.parent, place.name, static_cast<uid_t>(entry.uid),
                                      static_cast<gid_t>(entry.gid));
    if (!owned.ok()) {
      Error error = std::move(owned).error();
      error.what = "change the owner of " + quoted(place.name) + " to " +
                   std::to_string(entry.uid) + ":" + std::to_string(entry.gid);
      return error;
    }
  }
  return sys::set_modified_at(*place.parent, place.name, {entry.mtime, entry.mtime_nanoseconds});
}

/// The target is text for the container to resolve; here nobody follows it.
Result<void> LayerWriter::add_symlink(const Place& place, const TarEntry& entry) {
  if (entry.link.empty() || entry.link.size() > 4095) {
    return refuse(place.path, "a symbolic link needs a target of 1 to 4095 bytes");
  }
  auto made = sys::make_symlink(entry.link, *place.parent, place.name);
  if (!made.ok() && made.error().kind == Kind::exists) {
    TRY(displace(place));
    made = sys::make_symlink(entry.link, *place.parent, place.name);
  }
  TRY(std::move(made));
  return set_unopened(place, entry);
}

Result<void> LayerWriter::add_hard_link(const Place& place, const TarEntry& entry) {
  std::string reason = "it is a hard link to " + quoted(entry.link) + ", which ";
  auto target = clean_path(entry.link);
  if (!target.ok() || target->empty())
    return refuse(place.path, reason + "leads outside the layer");
  std::string directory = parent_of(*target);
  auto from =
      sys::open_beneath(levels_[0].fd, directory.empty() ? "." : directory, O_PATH | O_DIRECTORY);
  if (!from.ok() && from.error().sys_errno == EXDEV) {
    return refuse(place.path, reason + "leads outside the layer");
  }
  std::optional<struct stat> file;
  if (from.ok()) file = TRY(sys::stat_entry(*from, name_of(*target)));
  if (!file) return refuse(place.path, reason + "is not in this layer");
  if (!S_ISREG(file->st_mode)) return refuse(place.path, reason + "is no regular file");

  auto there = TRY(sys::stat_entry(*place.parent, place.name));
  if (there && there->st_ino == file->st_ino) return {};
  if (there) TRY(displace(place));
  TRY(sys::make_hard_link(*from, name_of(*target), *place.parent, place.name));
  if (options_->scan == nullptr) return {};
  std::string real = TRY(real_path(*from));
  options_->scan->link(place.path, join_path(real, name_of(*target)));
  return {};
}

Result<void> LayerWriter::add_node(const Place& place, const TarEntry& entry) {
  bool device = entry.type != Type::fifo;
  if (device && entry.device_major == 0 && entry.device_minor == 0) {
    return refuse(place.path, "a device 0:0 would hide what lies below it");
  }
  if (device && (entry.device_major > 0xfff || entry.device_minor > 0xfffff)) {
    return refuse(place.path, "a device " + std::to_string(entry.device_major) + ":" +
                                  std::to_string(entry.device_minor) + " cannot be");
  }
  mode_t kind = entry.type == Type::fifo               ? S_IFIFO
                : entry.type == Type::character_device ? S_IFCHR
                                                       : S_IFBLK;
  if (TRY(sys::stat_entry(*place.parent, place.name))) TRY(displace(place));
  bool allowed = !device || (options_->ownership == image::Ownership::full &&
                             options_->overlay_xattr == image::OverlayXattr::trusted);
  Result<void> made = make_error(Kind::denied, "make a device");
  if (allowed) {
    made = sys::make_node(*place.parent, place.name, kind | (entry.mode & 0777),
                          static_cast<unsigned>(entry.device_major),
                          static_cast<unsigned>(entry.device_minor));
  }
  if (device && !made.ok() && made.error().kind == Kind::denied) {
    if (devices_left_out_++ == 0) first_device_ = place.path;
    return {};
  }
  TRY(std::move(made));
  if ((entry.mode & umask_) != 0) {
    TRY(sys::change_mode_at(*place.parent, place.name, entry.mode & 0777));
  }
  return set_unopened(place, entry);
}

Result<void> LayerWriter::finish() {
  levels_.resize(1);
  std::string opaque_key = options_->overlay_xattr == image::OverlayXattr::trusted
                               ? "trusted.overlay.opaque"
                               : "user.overlay.opaque";
  // Children first: a directory may be about to lose the permission to be entered.
  for (auto item = directories_.rbegin(); item != directories_.rend(); ++item) {
    const auto& [path, facts] = *item;
    auto finished = [&, &path = path, &facts = facts]() -> Result<void> {
      sys::Fd fd = TRY(sys::open_at(levels_[0].fd, path.empty() ? "." : path, kDirectory));
      if (needs_owner(facts.uid, facts.gid)) {
        TRY(sys::change_owner(fd, facts.uid, facts.gid, name_of(path)));
      }
      TRY(set_attributes(fd, path, facts.xattrs));
      if (facts.opaque) TRY(sys::write_attribute(fd, opaque_key, "y"));
      TRY(sys::change_mode(fd, facts.mode, path));
      if (facts.has_time) TRY(sys::set_modified(fd, facts.modified, path));
      return {};
    }();
    if (!finished.ok()) return explain(std::move(finished).error(), path);
  }
  if (devices_left_out_ > 0) {
    warn(std::to_string(devices_left_out_) + " device nodes (first: " + quoted(first_device_) +
         ") cannot be made by an ordinary user, ignoring them");
  }
  if (attributes_left_out_ > 0) {
    warn(std::to_string(attributes_left_out_) + " file attributes (first: " +
         quoted(first_attribute_) + ") cannot be set here, ignoring them");
  }
  return {};
}

}  // namespace berth::transfer
