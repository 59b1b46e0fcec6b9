// SPDX-License-Identifier: Apache-2.0
// POSIX access lists, in the formats of archives and of the kernel: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::transfer {

inline constexpr std::string_view kAccessAcl = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAcl = "system.posix_acl_default";

/// The permissions of a file's owner, its group, others, and named users and groups.
struct Acl {
  enum Tag : uint16_t { owner = 1, user = 2, owning_group = 4, group = 8, mask = 16, other = 32 };
  struct Entry {
    uint16_t tag = 0;
    uint16_t permissions = 0;  ///< 0 to 7
    uint32_t id = 0;           ///< the id of a named user or group; else kNobody
  };
  static constexpr uint32_t kNobody = 0xffff'ffff;

  std::vector<Entry> entries;  ///< in the kernel's order
  bool unknown_names = false;  ///< an entry with a name but no id was left out

  /// "user::rw-,user:ada:r--:1001,group::r--,mask::r--,other::r--", the format of star, GNU tar and
  /// libarchive: parts end with ',' or a newline, comments are skipped. The id is the fourth field,
  /// or stands in place of the name; names are not looked up, as they may mean other users on this
  /// machine than in the image. Nothing if it is not such a list.
  static std::optional<Acl> parse_text(std::string_view text);
  /// The value of the attribute.  Source: linux/posix_acl_xattr.h
  static std::optional<Acl> parse(std::string_view value);

  std::string value() const;
  /// Whether the list says no more than the mode of a file does.
  bool is_minimal() const { return entries.size() == 3; }
  /// `mode` with the permissions that the kernel shows for a file with this list.
  uint32_t apply_to(uint32_t mode) const;
  /// `mode` for a file with a list that cannot be kept: the group gets its own permissions instead
  /// of those of the mask, which also covers the named users.
  uint32_t tighten(uint32_t mode) const;

 private:
  bool complete();
  const Entry* find(uint16_t tag) const;
};

}  // namespace berth::transfer
