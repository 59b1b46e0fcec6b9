// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/erofs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "facts/file_facts.hpp"
#include "sys/user/identity.hpp"

namespace berth::transfer {
namespace {

using erofs::as_directory;
using erofs::Directory;
using erofs::FileType;
using erofs::Node;

constexpr size_t kErofsFirstBytes = 4;

/// Whether the value has the form that the kernel accepts in setxattr(2); with another one,
/// execve(2) of the file would fail.
bool is_capability(std::string_view value) {
  constexpr uint32_t kRevision = 0xff00'0000;
  uint32_t magic = 0;
  if (value.size() < sizeof magic) return false;
  std::memcpy(&magic, value.data(), sizeof magic);
  return (value.size() == 20 && (magic & kRevision) == 0x0200'0000) ||
         (value.size() == 24 && (magic & kRevision) == 0x0300'0000);
}

}  // namespace

ErofsLayer::ErofsLayer(const sys::Fd& image, const erofs::Identity& identity,
                       const UnpackOptions& options)
    : MemberSink(options),
      writer_(image, identity, options.cache),
      identity_(identity),
      own_uid_(sys::effective_uid()),
      own_gid_(sys::effective_gid()) {
  writer_.observe([this](uint64_t at, std::string_view bytes) { extents_.add(at, bytes); });
  root_.facts = facts_of({}, 0755);
  root_.facts.modified = identity.build_time;
  root_.attributes = erofs::Attributes(erofs::kMaxRootAttributes);
}

Result<void> ErofsLayer::put(Directory& parent, const std::string& name,
                             std::shared_ptr<Node> node) {
  constexpr size_t kEntry = 160;
  constexpr size_t kPart = 80;
  const size_t parts = extents_.parts();
  TRY(charge(kEntry + name.size() + (parts - charged_parts_) * kPart));
  charged_parts_ = parts;
  parent.children[name] = std::move(node);
  return {};
}

Result<Directory*> ErofsLayer::put_directory(Directory& parent, const std::string& name) {
  TRY(charge(sizeof(Directory) + name.size()));
  auto made = std::make_shared<Directory>();
  made->facts = facts_of({}, 0755);
  made->facts.modified = identity_.build_time;
  made->parent = &parent;
  made->name = name;
  Directory* directory = made.get();
  TRY(put(parent, name, std::move(made)));
  return directory;
}

Result<std::string> ErofsLayer::enter(const std::string& directory) {
  here_ = &root_;
  size_t depth = 0;
  PathWalk walk(directory, options_->limits);
  while (!walk.ended()) {
    std::string name = walk.take();
    TRY(check_step(current_, name));
    if (name == "..") {
      if (here_->parent == nullptr) continue;
      here_ = here_->parent;
      --depth;
      continue;
    }
    if (depth >= options_->limits.path_depth) {
      return refuse_depth(join_path(path_of(*here_), name), options_->limits);
    }
    Directory* next = TRY(step(*here_, name, walk));
    if (next != here_) depth = next == &root_ ? 0 : depth + 1;  // else a link was followed
    here_ = next;
  }
  return path_of(*here_);
}

/// One step of a path: down, through a link, or into a missing directory.
Result<Directory*> ErofsLayer::step(Directory& here, const std::string& name, PathWalk& walk) {
  Node* node = find(here, name);
  if (Directory* below = as_directory(node)) return below;
  if (node == nullptr || node->whiteout) return make_parent(here, name);
  if (node->type != FileType::symlink) {
    std::string path = join_path(path_of(here), name);
    return refuse_entry(current_, quote(path) + " is not a directory");
  }
  Directory* from = TRY(follow(*node, here, walk));
  if (from == nullptr) {
    return refuse_entry(current_, "its path goes through too many symbolic links");
  }
  return from;
}

/// Returns the directory from which the walk continues to the link's target; null: too many links.
Result<Directory*> ErofsLayer::follow(const Node& link, Directory& from, PathWalk& walk) {
  std::string target = TRY(writer_.read_link(link));
  if (!walk.follow(target)) return nullptr;
  return target.starts_with('/') ? &root_ : &from;
}

/// Makes a directory that has no entry of its own in the tar, or has it later.
Result<Directory*> ErofsLayer::make_parent(Directory& here, const std::string& name) {
  Node* node = find(here, name);
  bool whiteout = node != nullptr && node->whiteout;
  Directory* made = TRY(put_directory(here, name));
  if (whiteout) TRY(make_opaque(*made));
  return made;
}

/// Returns null if there is no directory at the path.
Result<Directory*> ErofsLayer::find_directory(const std::string& path) {
  Directory* here = &root_;
  PathWalk walk(path, options_->limits);
  while (here != nullptr && !walk.ended()) {
    std::string name = walk.take();
    if (name == "..") {
      here = here->parent != nullptr ? here->parent : here;
      continue;
    }
    Node* node = find(*here, name);
    if (node == nullptr || node->type != FileType::symlink) {
      here = as_directory(node);
      continue;
    }
    here = TRY(follow(*node, *here, walk));
  }
  return here;
}

/// A later entry of the same name replaces the earlier one.
void ErofsLayer::displace(const Place& place) {
  if (here_->children.erase(place.name) == 0) return;
  if (options_->scan != nullptr) options_->scan->remove(place.path);
}

erofs::Facts ErofsLayer::facts_of(const TarEntry& entry, uint32_t mode) const {
  bool full = options_->ownership == image::Ownership::full;
  erofs::Facts facts;
  facts.mode = mode;
  facts.uid = full ? static_cast<uint32_t>(entry.uid) : own_uid_;
  facts.gid = full ? static_cast<uint32_t>(entry.gid) : own_gid_;
  facts.modified = entry.mtime;
  facts.modified_nanoseconds = entry.mtime_nanoseconds;
  return facts;
}

Result<erofs::Attributes> ErofsLayer::attributes_of(const std::string& path, const Xattrs& xattrs,
                                                    bool opaque, size_t max_bytes) {
  erofs::Attributes attributes(max_bytes);
  // Added first, so that there is room for it.
  if (opaque) TRY(attributes.add(opaque_key(*options_), "y"));
  for (const auto& [key, value] : xattrs) {
    if (!may_keep(key)) continue;
    TRY(check_attribute(path, value));
    bool valid = key != "security.capability" || is_capability(value);
    if (!valid || !attributes.add(key, value).ok()) left_out_.add_attribute(key, path);
  }
  return attributes;
}

Result<void> ErofsLayer::describe(Directory& directory, const TarEntry& entry) {
  bool is_root = directory.parent == nullptr;
  auto attributes = TRY(attributes_of(path_of(directory), entry.xattrs, directory.opaque,
                                      is_root ? erofs::kMaxRootAttributes : erofs::kMaxAttributes));
  TRY(charge(attributes.bytes().size()));
  directory.facts = facts_of(entry, usable_mode(entry, options_->ownership));
  directory.attributes = std::move(attributes);
  return {};
}

Result<void> ErofsLayer::make_opaque(Directory& directory) {
  if (std::exchange(directory.opaque, true)) return {};
  return directory.attributes.add(opaque_key(*options_), "y");
}

Result<void> ErofsLayer::describe_root(const TarEntry& entry) {
  return describe(root_, entry);
}

Result<void> ErofsLayer::mark_opaque() {
  return make_opaque(*here_);
}

Result<void> ErofsLayer::hide(const Place& place) {
  Node* node = find(*here_, place.name);
  // An entry of this layer hides the lower entry anyway, except a directory, which overlay would
  // merge with the lower one.
  if (Directory* directory = as_directory(node)) return make_opaque(*directory);
  if (node != nullptr) return {};
  erofs::Facts facts = facts_of({}, 0);
  facts.modified = identity_.build_time;
  auto whiteout = TRY(writer_.add_special(facts, FileType::character_device, 0, 0));
  whiteout->whiteout = true;
  return put(*here_, place.name, std::move(whiteout));
}

/// Scans the file that was just written.
void ErofsLayer::scan(const Place& place, const erofs::Writer::File& file, uint64_t size,
                      std::string_view first_bytes) {
  if (options_->scan == nullptr || !facts::may_have_facts(place.path, first_bytes)) return;
  options_->scan->add(place.path, [&](uint64_t offset, size_t length) -> Result<std::string> {
    uint64_t left = size - std::min(offset, size);
    return writer_.read(file.content + offset, std::min<uint64_t>(length, left));
  });
}

Result<void> ErofsLayer::add_file(const Place& place, const TarEntry& entry, TarReader& tar) {
  displace(place);
  auto attributes = TRY(attributes_of(place.path, entry.xattrs, false));
  std::string first_bytes;
  auto content = [&]() -> Result<erofs::Writer::Part> {
    uint64_t hole = tar.skip_hole();
    std::string_view bytes = TRY(tar.content());
    if (first_bytes.size() < kErofsFirstBytes) {
      first_bytes.append(std::min<uint64_t>(hole, kErofsFirstBytes), '\0');
      first_bytes += bytes.substr(0, kErofsFirstBytes);
    }
    return erofs::Writer::Part{hole, bytes};
  };
  erofs::Facts facts = facts_of(entry, usable_mode(entry, options_->ownership));
  auto file = TRY(writer_.add_file(facts, attributes, entry.size, content));
  bytes_ += entry.size;
  scan(place, file, entry.size, first_bytes);
  return put(*here_, place.name, std::move(file.node));
}

Result<void> ErofsLayer::add_directory(const Place& place, const TarEntry& entry) {
  Node* node = find(*here_, place.name);
  if (Directory* known = as_directory(node)) return describe(*known, entry);
  bool whiteout = node != nullptr && node->whiteout;
  displace(place);
  Directory* made = TRY(put_directory(*here_, place.name));
  made->opaque = whiteout;
  return describe(*made, entry);
}

/// Only the container resolves the target.
Result<void> ErofsLayer::add_symlink(const Place& place, const TarEntry& entry) {
  displace(place);
  auto node = TRY(writer_.add_symlink(facts_of(entry, 0777), entry.link));
  return put(*here_, place.name, std::move(node));
}

Result<void> ErofsLayer::add_hard_link(const Place& place, const TarEntry& entry) {
  std::string reason = "it is a hard link to " + quote(entry.link) + ", which ";
  auto target = clean_path(entry.link, options_->limits);
  if (!target.ok() || target->empty()) return refuse_entry(place.path, reason + "is not a file");
  Directory* from = TRY(find_directory(parent_of(*target)));
  Node* file = from == nullptr ? nullptr : find(*from, name_of(*target));
  if (file == nullptr && left_out_.add_link(place.path, *target)) {
    displace(place);
    return {};
  }
  if (file == nullptr) return refuse_entry(place.path, reason + "is not in this layer");
  std::string path = join_path(path_of(*from), name_of(*target));
  if (file->whiteout && is_device_whiteout(path)) return hide_by_device(place);
  if (file->whiteout) return refuse_entry(place.path, reason + "is not in this layer");
  if (as_directory(file) != nullptr) return refuse_entry(place.path, reason + "is a directory");
  if (find(*here_, place.name) == file) return {};
  if (is_below(path, place.path)) return refuse_entry(place.path, reason + "it would replace");
  std::shared_ptr<Node> node = from->children.find(name_of(*target))->second;
  displace(place);
  bool scanned = options_->scan != nullptr && node->type == FileType::file;
  if (scanned) options_->scan->link(place.path, path);
  return put(*here_, place.name, std::move(node));
}

Result<void> ErofsLayer::add_node(const Place& place, const TarEntry& entry) {
  displace(place);
  bool device = entry.type != TarEntry::Type::fifo;
  if (device && !makes_devices(*options_)) {
    left_out_.add_device(place.path, entry);
    return {};
  }
  FileType type = entry.type == TarEntry::Type::fifo               ? FileType::fifo
                  : entry.type == TarEntry::Type::character_device ? FileType::character_device
                                                                   : FileType::block_device;
  auto number = [&](uint64_t value) { return device ? static_cast<unsigned>(value) : 0; };
  auto node =
      TRY(writer_.add_special(facts_of(entry, usable_mode(entry, options_->ownership)), type,
                              number(entry.device_major), number(entry.device_minor)));
  return put(*here_, place.name, std::move(node));
}

Result<void> ErofsLayer::finish() {
  TRY(writer_.finish(root_));
  left_out_.warn(*options_);
  return {};
}

}  // namespace berth::transfer
