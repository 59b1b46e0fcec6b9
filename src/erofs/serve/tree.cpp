// SPDX-License-Identifier: Apache-2.0
#include "erofs/serve/tree.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "sys/user/identity.hpp"

namespace berth::erofs {
namespace {

constexpr uint32_t kNobody = 65534;

bool has(const Owners::Ranges& ranges, uint32_t id) {
  return std::ranges::any_of(ranges, [&](const sys::IdRange& range) {
    return id >= range.inside && id - range.inside < range.count;
  });
}

/// An entry of an access list. The entries are behind the four bytes of the version.  Source:
/// acl(5), the kernel's posix_acl_xattr.h
struct AclEntry {
  uint16_t tag = 0;
  uint16_t permissions = 0;
  uint32_t id = 0;
};
constexpr size_t kAclHeader = 4;
constexpr uint16_t kUser = 0x02;
constexpr uint16_t kOwningGroup = 0x04;
constexpr uint16_t kGroup = 0x08;

std::vector<AclEntry> entries_of(std::string_view acl) {
  std::vector<AclEntry> entries;
  for (size_t at = kAclHeader; at + sizeof(AclEntry) <= acl.size(); at += sizeof(AclEntry)) {
    std::memcpy(&entries.emplace_back(), acl.data() + at, sizeof(AclEntry));
  }
  return entries;
}

constexpr std::string_view kAccessList = "system.posix_acl_access";

bool is_list(std::string_view key) {
  return key.starts_with("system.posix_acl_");
}

}  // namespace

Owners::Owners(Ranges uids, Ranges gids, uint32_t own_uid, uint32_t own_gid)
    : uids_(std::move(uids)), gids_(std::move(gids)) {
  other_uid_ = has(uids_, kNobody) ? kNobody : own_uid;
  other_gid_ = has(gids_, kNobody) ? kNobody : own_gid;
}

Result<Owners> Owners::of_this_process() {
  auto uids = TRY(sys::mapped_uids());
  auto gids = TRY(sys::mapped_gids());
  return Owners(std::move(uids), std::move(gids), sys::effective_uid(), sys::effective_gid());
}

void Owners::translate(Inode& inode) const {
  if (!has(uids_, inode.uid)) {
    inode.uid = other_uid_;
    inode.mode &= ~static_cast<uint32_t>(S_ISUID);
  }
  if (!has(gids_, inode.gid)) {
    inode.gid = other_gid_;
    if (!S_ISDIR(inode.mode)) inode.mode &= ~static_cast<uint32_t>(S_ISGID);
  }
}

bool Owners::know_all_of(std::string_view acl) const {
  return std::ranges::all_of(entries_of(acl), [&](const AclEntry& entry) {
    return (entry.tag != kUser || has(uids_, entry.id)) &&
           (entry.tag != kGroup || has(gids_, entry.id));
  });
}

uint32_t Owners::without_list(uint32_t mode, std::string_view acl) const {
  for (const AclEntry& entry : entries_of(acl)) {
    uint32_t granted = entry.permissions & 7u;
    if (entry.tag == kOwningGroup) mode &= ~070u | granted << 3;
    bool known = (entry.tag == kUser && has(uids_, entry.id)) ||
                 (entry.tag == kGroup && has(gids_, entry.id));
    if (known) mode &= ~077u | granted << 3 | granted;
  }
  return mode;
}

std::optional<std::string> shown_key(std::string_view stored, Marks marks) {
  constexpr std::string_view kTrusted = "trusted.";
  constexpr std::string_view kMark = "trusted.overlay.";
  if (marks == Marks::stored || !stored.starts_with(kTrusted)) return std::string(stored);
  if (!stored.starts_with(kMark)) return std::nullopt;
  return "user." + std::string(stored.substr(kTrusted.size()));
}

Result<Inode> ShownTree::inode(uint64_t number) const {
  Inode inode = TRY(reader_->inode(number));
  owners_.translate(inode);
  if (inode.attributes_size == 0) return inode;
  for (const AttributePlace& attribute : TRY(reader_->attributes(inode))) {
    if (attribute.key != kAccessList) continue;
    std::string list = TRY(reader_->read(attribute.value));
    if (!owners_.know_all_of(list)) inode.mode = owners_.without_list(inode.mode, list);
    break;  // if there are several, the first one counts
  }
  return inode;
}

/// The attributes with their visible keys. If two have the same key, the first one counts.
Result<std::vector<AttributePlace>> ShownTree::attributes(const Inode& inode) const {
  std::vector<AttributePlace> shown;
  std::set<std::string> lists;
  for (AttributePlace& attribute : TRY(reader_->attributes(inode))) {
    if (is_list(attribute.key)) {
      if (!lists.insert(attribute.key).second) continue;
      // The kernel would refuse the whole file because of an unknown id.
      std::string list = TRY(reader_->read(attribute.value));
      if (!owners_.know_all_of(list)) continue;
    }
    auto key = shown_key(attribute.key, marks_);
    bool taken = key && std::ranges::find(shown, *key, &AttributePlace::key) != shown.end();
    if (key && !taken) shown.push_back({std::move(*key), attribute.value});
  }
  return shown;
}

Result<std::optional<std::string>> ShownTree::attribute(const Inode& inode,
                                                        std::string_view key) const {
  for (const AttributePlace& attribute : TRY(attributes(inode))) {
    if (attribute.key != key) continue;
    std::string value = TRY(reader_->read(attribute.value));
    return std::optional<std::string>(std::move(value));
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> ShownTree::attribute_names(const Inode& inode) const {
  std::vector<std::string> names;
  for (AttributePlace& attribute : TRY(attributes(inode)))
    names.push_back(std::move(attribute.key));
  return names;
}

}  // namespace berth::erofs
