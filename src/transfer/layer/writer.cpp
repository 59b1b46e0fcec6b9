// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.hpp"
#include "facts/file_facts.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"
#include "sys/user/identity.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/tar/acl.hpp"

namespace berth::transfer {
namespace {

using Type = TarEntry::Type;

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr uint64_t kLarge = uint64_t{1} << 20;  // written in pieces of their own

bool is_in(const std::vector<sys::IdRange>& ranges, uint64_t id) {
  return ranges.empty() || std::ranges::any_of(ranges, [&](const sys::IdRange& range) {
           return id >= range.inside && id - range.inside < range.count;
         });
}

}  // namespace

Result<LayerWriter> LayerWriter::make(const sys::Fd& root, const UnpackOptions& options) {
  LayerWriter writer(options);
  writer.own_uid_ = sys::effective_uid();
  writer.own_gid_ = sys::effective_gid();
  if (options.ownership == image::Ownership::full && !sys::in_initial_user_namespace()) {
    writer.uids_ = TRY(sys::mapped_uids());
    writer.gids_ = TRY(sys::mapped_gids());
  }
  writer.umask_ = TRY(sys::current_umask());
  writer.root_path_ = TRY(sys::read_link(sys::cwd(), sys::fd_path(root)));
  sys::Fd own = TRY(sys::open_at(root, ".", kDirectory));
  writer.levels_.push_back({"", std::move(own)});
  // Below a set-group-id directory every file of the store would get the group of that directory.
  TRY(sys::change_owner(writer.levels_[0].fd, writer.own_uid_, writer.own_gid_, "."));
  TRY(sys::change_mode(writer.levels_[0].fd, 0700, "."));
  // Below a directory with a default list every file would get that list.
  TRY(sys::remove_attribute(writer.levels_[0].fd, std::string(kDefaultAcl)));
  TRY(sys::remove_attribute(writer.levels_[0].fd, std::string(kAccessAcl)));
  writer.directories_[""] = {};
  return writer;
}

bool LayerWriter::has_user(uint64_t uid) const {
  return is_in(uids_, uid);
}

bool LayerWriter::has_group(uint64_t gid) const {
  return is_in(gids_, gid);
}

/// Makes `levels_` end at `wanted`, creating missing directories.
Result<std::string> LayerWriter::enter(const std::string& wanted) {
  while (!is_below(wanted, levels_.back().path)) levels_.pop_back();
  PathWalk walk(wanted.substr(levels_.back().path.size()), options_->limits);
  while (!walk.ended()) {
    std::string name = walk.take();
    TRY(check_step(current_, name));
    if (name != "..") {
      TRY(enter_child(name, walk));
    } else if (levels_.size() > 1) {
      levels_.pop_back();
    }
  }
  return levels_.back().path;
}

/// One step down. If the child is a link, the walk continues with the parts of its target.
Result<void> LayerWriter::enter_child(const std::string& name, PathWalk& walk) {
  const sys::Fd& here = levels_.back().fd;
  std::string path = join_path(levels_.back().path, name);
  if (levels_.size() > options_->limits.path_depth) return refuse_depth(path, options_->limits);
  auto fd = sys::open_at(here, name, kDirectory);
  if (fd.ok()) {
    levels_.push_back({path, std::move(*fd)});
    return {};
  }
  auto entry = TRY(sys::stat_entry(here, name));
  if (entry && S_ISDIR(entry->st_mode)) return std::move(fd).error();
  if (entry && S_ISLNK(entry->st_mode)) {
    std::string target = TRY(sys::read_link(here, name));
    if (!walk.follow(target)) {
      return refuse_entry(current_, "its path goes through too many symbolic links");
    }
    if (target.starts_with('/')) levels_.resize(1);
    return {};
  }
  bool whiteout = TRY(is_whiteout(here, name));
  if (entry && !whiteout) return refuse_entry(current_, quote(path) + " is not a directory");
  // Makes a directory that has no entry of its own in the tar, or has it later.
  if (whiteout) TRY(sys::remove_entry(here, name));
  TRY(sys::make_new_directory(here, name, 0700));
  TRY(describe(path))->opaque = whiteout;
  sys::Fd made = TRY(sys::open_at(here, name, kDirectory));
  levels_.push_back({path, std::move(made)});
  return {};
}

/// The path of a directory of this layer, without links.
Result<std::string> LayerWriter::real_path(const sys::Fd& directory) const {
  std::string path = TRY(sys::read_link(sys::cwd(), sys::fd_path(directory)));
  path.erase(0, std::min(root_path_.size() + 1, path.size()));
  return path;
}

Result<bool> LayerWriter::is_whiteout(const sys::Fd& directory, const std::string& name) const {
  auto entry = TRY(sys::stat_entry(directory, name));
  return entry && S_ISCHR(entry->st_mode) && entry->st_rdev == 0;
}

/// A later entry of the same name replaces the earlier one.
Result<void> LayerWriter::displace(const Place& place) {
  TRY(sys::remove_tree(here(), place.name));
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

LayerWriter::DirectoryFacts LayerWriter::facts_of(const TarEntry& entry) const {
  DirectoryFacts facts;
  facts.mode = usable_mode(entry, options_->ownership);
  facts.uid = static_cast<uint32_t>(entry.uid);
  facts.gid = static_cast<uint32_t>(entry.gid);
  facts.has_time = true;
  facts.modified = {entry.mtime, entry.mtime_nanoseconds};
  facts.xattrs = entry.xattrs;
  return facts;
}

namespace {

/// Whether the layer can do without an attribute that the file system refuses.
bool is_tolerable(const Error& error, std::string_view value) {
  // Many file systems have one block for all attributes of a file, and return ENOSPC beyond it.
  bool too_large = (error.sys_errno == ENOSPC || error.sys_errno == E2BIG) && value.size() > 1024;
  return error.kind == Kind::denied || error.kind == Kind::unsupported ||
         error.sys_errno == EINVAL || too_large;
}

}  // namespace

/// Sets the attributes; removes rights from `mode` if an access list cannot be kept.
Result<void> LayerWriter::set_attributes(
    const sys::Fd& fd, const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& xattrs, uint32_t& mode) {
  for (const auto& [key, value] : xattrs) {
    if (!may_keep(key)) continue;
    TRY(check_attribute(path, value));
    auto written = sys::write_attribute(fd, key, value);
    if (written.ok()) continue;
    if (!is_tolerable(written.error(), value)) return written;
    left_out_.add_attribute(key, path);
    auto acl = key == kAccessAcl ? Acl::parse(value) : std::nullopt;
    if (acl) mode = acl->tighten(mode);
  }
  return {};
}

/// Returns the attributes of the directory at `path`, which stay in memory until finish().
Result<LayerWriter::DirectoryFacts*> LayerWriter::describe(const std::string& path) {
  auto [item, is_new] = directories_.try_emplace(path);
  constexpr size_t kEntry = 48 + sizeof(std::string) + sizeof(DirectoryFacts);
  if (is_new) TRY(charge(kEntry + path.size()));
  return &item->second;
}

Result<void> LayerWriter::describe_root(const TarEntry& entry) {
  bool opaque = directories_[""].opaque;
  directories_[""] = facts_of(entry);
  directories_[""].opaque = opaque;
  return {};
}

Result<void> LayerWriter::mark_opaque() {
  directories_[levels_.back().path].opaque = true;
  return {};
}

Result<void> LayerWriter::hide(const Place& place) {
  auto entry = TRY(sys::stat_entry(here(), place.name));
  if (!entry) return sys::make_node(here(), place.name, S_IFCHR, 0, 0);
  // An entry of this layer hides the lower entry anyway, except a directory, which overlay would
  // merge with the lower one.
  if (S_ISDIR(entry->st_mode)) directories_[place.path].opaque = true;
  return {};
}

/// Through the handle that wrote the file, so that it cannot have been replaced.
void LayerWriter::scan(const sys::Fd& fd, const Place& place, std::string_view first_bytes) {
  if (options_->scan == nullptr || !facts::may_have_facts(place.path, first_bytes)) return;
  options_->scan->add(place.path, [&](uint64_t offset, size_t length) {
    return sys::read_at(fd, offset, length, place.name);
  });
}

/// Returns the first bytes. Parts that are not written stay holes.
Result<std::string> LayerWriter::write_content(const sys::Fd& fd, const std::string& name,
                                               const TarEntry& entry, TarReader& tar,
                                               uint64_t& content) {
  bool large = entry.size >= kLarge;
  if (large) pieces_.begin(fd, name);
  std::string first_bytes;
  uint64_t at = 0;
  while (true) {
    uint64_t hole = tar.skip_hole();
    std::string_view part = TRY(tar.content());
    if (first_bytes.size() < facts::kFirstBytes) {
      first_bytes.append(std::min<uint64_t>(hole, facts::kFirstBytes), '\0');
      first_bytes += part.substr(0, facts::kFirstBytes);
    }
    at += hole;
    if (part.empty()) break;
    content = checksum(content, part);
    TRY(large ? pieces_.write(at, part) : sys::write_at(fd, at, part, name));
    at += part.size();
  }
  TRY(pieces_.flush());
  if (entry.sparse) TRY(sys::truncate(fd, entry.size, name));
  return first_bytes;
}

/// Records the content for the layer. A file with holes is read again.
Result<void> LayerWriter::note_written(const sys::Fd& fd, const Place& place, const TarEntry& entry,
                                       uint64_t content) {
  constexpr size_t kEntry = 64;
  struct stat status = TRY(sys::stat_fd(fd, place.name));
  auto [item, is_new] = written_.try_emplace(status.st_ino);
  if (is_new) TRY(charge(kEntry));
  item->second = {content, !entry.xattrs.empty()};
  if (entry.sparse) item->second.content.reset();
  return {};
}

Result<void> LayerWriter::add_file(const Place& place, const TarEntry& entry, TarReader& tar) {
  constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  uint32_t mode = usable_mode(entry, options_->ownership);
  auto opened = sys::open_at(here(), place.name, kNew, mode & 0777);
  if (!opened.ok() && opened.error().kind == Kind::exists) {
    TRY(displace(place));
    opened = sys::open_at(here(), place.name, kNew, mode & 0777);
  }
  if (!opened.ok()) return std::move(opened).error();
  sys::Fd fd = std::move(*opened);
  uint64_t content = 0;
  std::string first_bytes = TRY(write_content(fd, place.name, entry, tar, content));
  TRY(note_written(fd, place, entry, content));
  bytes_ += entry.size;
  scan(fd, place, first_bytes);
  // chown(2) clears set-id bits and capabilities, so it comes first.
  if (needs_owner(entry.uid, entry.gid)) {
    TRY(sys::change_owner(fd, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid),
                          place.name));
  }
  uint32_t wanted = mode;
  TRY(set_attributes(fd, place.path, entry.xattrs, mode));
  if ((mode & 07000) != 0 || (mode & umask_) != 0 || mode != wanted) {
    TRY(sys::change_mode(fd, mode, place.name));
  }
  TRY(sys::set_modified(fd, {entry.mtime, entry.mtime_nanoseconds}, place.name));
  return sys::close_checked(std::move(fd), place.name);
}

Result<void> LayerWriter::add_directory(const Place& place, const TarEntry& entry) {
  DirectoryFacts facts = facts_of(entry);
  auto made = sys::make_new_directory(here(), place.name, 0700);
  if (!made.ok()) {
    if (made.error().kind != Kind::exists) return made;
    auto known = directories_.find(place.path);
    if (known != directories_.end()) {
      facts.opaque = known->second.opaque;
    } else {
      facts.opaque = TRY(is_whiteout(here(), place.name));
      TRY(displace(place));
      TRY(sys::make_new_directory(here(), place.name, 0700));
    }
  }
  for (const auto& [key, value] : facts.xattrs) TRY(charge(key.size() + value.size()));
  *TRY(describe(place.path)) = std::move(facts);
  return {};
}

/// Sets owner and time of a link or node.
Result<void> LayerWriter::describe_made(const sys::Fd& made, const Place& place,
                                        const TarEntry& entry) {
  if (needs_owner(entry.uid, entry.gid)) {
    TRY(sys::change_owner(made, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid),
                          place.name));
  }
  return sys::set_modified(made, {entry.mtime, entry.mtime_nanoseconds}, place.name);
}

/// Only the container resolves the target; here it is never followed.
Result<void> LayerWriter::add_symlink(const Place& place, const TarEntry& entry) {
  auto made = sys::make_symlink(entry.link, here(), place.name);
  if (!made.ok() && made.error().kind == Kind::exists) {
    TRY(displace(place));
    made = sys::make_symlink(entry.link, here(), place.name);
  }
  TRY(std::move(made));
  sys::Fd link = TRY(sys::hold_made(here(), place.name, S_IFLNK));
  return describe_made(link, place, entry);
}

Result<void> LayerWriter::add_hard_link(const Place& place, const TarEntry& entry) {
  std::string reason = "it is a hard link to " + quote(entry.link) + ", which ";
  auto target = clean_path(entry.link, options_->limits);
  if (!target.ok() || target->empty()) return refuse_entry(place.path, reason + "is not a file");
  auto from = sys::open_in_root(levels_[0].fd, "/" + parent_of(*target), O_PATH | O_DIRECTORY);
  std::optional<struct stat> file;
  if (from.ok()) file = TRY(sys::stat_entry(*from, name_of(*target)));
  if (!file && left_out_.add_link(place.path, *target)) return displace(place);
  bool hidden = file && S_ISCHR(file->st_mode) && TRY(is_whiteout(*from, name_of(*target)));
  if (!file) return refuse_entry(place.path, reason + "is not in this layer");
  std::string path = join_path(TRY(real_path(*from)), name_of(*target));
  if (hidden && is_device_whiteout(path)) return hide_by_device(place);
  if (hidden) return refuse_entry(place.path, reason + "is not in this layer");
  // All other files may have several names, even symbolic links, which linkat(2) does not follow.
  if (S_ISDIR(file->st_mode)) return refuse_entry(place.path, reason + "is a directory");

  auto there = TRY(sys::stat_entry(here(), place.name));
  if (there && there->st_ino == file->st_ino) return {};
  if (is_below(path, place.path)) return refuse_entry(place.path, reason + "it would replace");
  if (there) TRY(displace(place));
  TRY(charge(path.size() + place.path.size()));  // that record_tree() will keep
  TRY(sys::make_hard_link(*from, name_of(*target), here(), place.name));
  if (options_->scan != nullptr && S_ISREG(file->st_mode)) options_->scan->link(place.path, path);
  return {};
}

Result<void> LayerWriter::add_node(const Place& place, const TarEntry& entry) {
  bool device = entry.type != Type::fifo;
  mode_t kind = entry.type == Type::fifo               ? S_IFIFO
                : entry.type == Type::character_device ? S_IFCHR
                                                       : S_IFBLK;
  if (TRY(sys::stat_entry(here(), place.name))) TRY(displace(place));
  bool allowed = !device || makes_devices(*options_);
  Result<void> made = make_error(Kind::denied, "make a device");
  if (allowed) {
    made = sys::make_node(here(), place.name, kind | (entry.mode & 0777),
                          static_cast<unsigned>(entry.device_major),
                          static_cast<unsigned>(entry.device_minor));
  }
  if (device && !made.ok() && made.error().kind == Kind::denied) {
    left_out_.add_device(place.path, entry);
    return {};
  }
  TRY(std::move(made));
  sys::Fd node = TRY(sys::hold_made(here(), place.name, kind,
                                    makedev(static_cast<unsigned>(entry.device_major),
                                            static_cast<unsigned>(entry.device_minor))));
  TRY(describe_made(node, place, entry));
  // After chown(2), as for files: it clears set-id bits.
  uint32_t mode = usable_mode(entry, options_->ownership);
  if ((mode & (07000 | umask_)) == 0) return {};
  return sys::change_mode(node, mode, place.name);
}

Result<void> LayerWriter::finish() {
  levels_.resize(1);
  std::string opaque = opaque_key(*options_);
  // Children first: a directory may be about to lose the permission to enter it.
  for (auto item = directories_.rbegin(); item != directories_.rend(); ++item) {
    const auto& [path, facts] = *item;
    auto finished = [&, &path = path, &facts = facts]() -> Result<void> {
      sys::Fd fd = TRY(sys::open_at(levels_[0].fd, path.empty() ? "." : path, kDirectory));
      if (needs_owner(facts.uid, facts.gid)) {
        TRY(sys::change_owner(fd, facts.uid, facts.gid, name_of(path)));
      }
      uint32_t mode = facts.mode;
      TRY(set_attributes(fd, path, facts.xattrs, mode));
      if (facts.opaque) TRY(sys::write_attribute(fd, opaque, "y"));
      TRY(sys::change_mode(fd, mode, path));
      if (facts.has_time) TRY(sys::set_modified(fd, facts.modified, path));
      return {};
    }();
    if (!finished.ok()) return explain_entry(std::move(finished).error(), path);
  }
  left_out_.warn(*options_);
  return {};
}

}  // namespace berth::transfer
