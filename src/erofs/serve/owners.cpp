// SPDX-License-Identifier: Apache-2.0
#include "erofs/serve/owners.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "sys/user/identity.hpp"

namespace berth::erofs {
namespace {

constexpr uint32_t kNobody = 65534;

bool has(const Owners::Ranges& ranges, uint32_t id) {
  return std::ranges::any_of(ranges, [&](const sys::IdRange& range) {
    return id >= range.inside && id - range.inside < range.count;
  });
}

/// An entry of an access list, behind the four bytes of its version.  Source: acl(5), the kernel's
/// posix_acl_xattr.h
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

}  // namespace berth::erofs
