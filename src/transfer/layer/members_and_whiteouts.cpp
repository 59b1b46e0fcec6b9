// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/members_and_whiteouts.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

bool has_part(const std::string& path, std::string_view beginning) {
  auto parts = split(path, '/');
  return std::ranges::any_of(parts, [&](auto part) { return part.starts_with(beginning); });
}

}  // namespace

Result<void> MemberSink::charge(size_t bytes) {
  tree_bytes_ += bytes;
  if (tree_bytes_ <= options_->limits.tree_bytes) return {};
  return make_error(Kind::corrupt,
                    "the names of the layer take more than " +
                        std::to_string(options_->limits.tree_bytes) + " bytes of memory",
                    kRaiseHint);
}

Result<void> MemberSink::add(const TarEntry& entry, TarReader& tar) {
  TRY(check_entry(entry, ++entries_, options_->limits));
  bool has_owner = has_user(entry.uid) && has_group(entry.gid);
  if (has_owner && !has_acl(entry)) return add_resolved(entry, tar);
  TarEntry settled = entry;
  apply_acls(settled, entry.path, *options_, left_out_);
  if (!has_owner) choose_owner(settled);
  return add_resolved(settled, tar);
}

// Gives the file to root, so that no other user of the container gets it, and clears the set-id
// bits, so that it does not run with the rights of root.
void MemberSink::choose_owner(TarEntry& entry) {
  left_out_.add_owner(entry);
  if (!has_user(entry.uid)) {
    entry.uid = 0;
    entry.mode &= ~04000u;
  }
  if (!has_group(entry.gid)) {
    entry.gid = 0;
    if (entry.type != TarEntry::Type::directory) entry.mode &= ~02000u;
  }
}

Result<void> MemberSink::add_resolved(const TarEntry& entry, TarReader& tar) {
  std::string path = TRY(clean_path(entry.path, options_->limits));
  current_ = path;
  if (path.empty()) {
    if (entry.type == TarEntry::Type::directory) return describe_root(entry);
    return refuse_entry(entry.path, "the root is a directory");
  }
  if (has_part(parent_of(path), kWhiteoutMeta)) return {};  // AUFS's own metadata
  auto made = add_member(path, entry, tar);
  if (!made.ok()) return explain_entry(std::move(made).error(), path);
  return {};
}

Result<void> MemberSink::add_member(const std::string& path, const TarEntry& entry,
                                    TarReader& tar) {
  using EntryType = TarEntry::Type;
  std::string directory = TRY(enter(parent_of(path)));
  Place place{name_of(path), join_path(directory, name_of(path))};
  // A path through links could be arbitrarily deep.
  if (place.path != path) TRY(clean_path(place.path, options_->limits));
  if (place.name.starts_with(kWhiteout)) return add_whiteout(place);
  switch (entry.type) {
    case EntryType::file:
      TRY(check_size(entry, bytes_, options_->limits));
      TRY(check_ratio(entry, options_->blob_size, options_->limits));
      return add_file(place, entry, tar);
    case EntryType::directory:
      return add_directory(place, entry);
    case EntryType::symlink:
      TRY(check_symlink(place.path, entry));
      return add_symlink(place, entry);
    case EntryType::hard_link:
    case EntryType::character_device:
    case EntryType::block_device:
    case EntryType::fifo:
      return add_other(place, entry);
  }
  return {};
}

/// Overlay takes a character device 0:0 as a whiteout, so it can be nothing else in a container.
/// Images that contain layers of other images have such devices, and hard links to them.
Result<void> MemberSink::add_other(const Place& place, const TarEntry& entry) {
  if (entry.type == TarEntry::Type::hard_link) return add_hard_link(place, entry);
  TRY(check_node(place.path, entry));
  bool hides = entry.type == TarEntry::Type::character_device && entry.device_major == 0 &&
               entry.device_minor == 0;
  return hides ? hide_by_device(place) : add_node(place, entry);
}

Result<void> MemberSink::hide_by_device(const Place& place) {
  constexpr size_t kEntry = 64;
  if (device_whiteouts_.insert(place.path).second) TRY(charge(kEntry + place.path.size()));
  return hide(place);
}

/// Whiteouts only affect the layers below, wherever they are in the archive (image-spec layer.md:
/// "Whiteout files MUST only apply to resources in lower/parent layers").
Result<void> MemberSink::add_whiteout(const Place& place) {
  if (place.name == kOpaque) return mark_opaque();
  if (place.name.starts_with(kWhiteoutMeta)) return {};
  std::string hidden = TRY(hidden_name(place.path));
  return hide({hidden, join_path(parent_of(place.path), hidden)});
}

}  // namespace berth::transfer
