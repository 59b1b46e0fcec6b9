// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/reader.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::erofs {

/// The owners of an image's files in a user namespace. Mapped ids are unchanged. Unmapped ones
/// become 65534, or, if that is unmapped too, the caller: with a single id everything is the
/// caller's, as in layers that such a user unpacks.
class Owners {
 public:
  using Ranges = std::vector<sys::IdRange>;
  Owners(Ranges uids, Ranges gids, uint32_t own_uid, uint32_t own_gid);
  /// For this process's user namespace.  Errors: io.
  static Result<Owners> of_this_process();

  /// Replaces unmapped owners, and removes their set-id bits.
  void translate(Inode& inode) const;

  /// Whether all ids in an access list (system.posix_acl_*) are mapped.
  bool know_all_of(std::string_view acl) const;

  /// `mode` without a list that cannot be shown: drops the rights of named users only, and gives
  /// group and others no more than the mapped entries have.
  uint32_t without_list(uint32_t mode, std::string_view acl) const;

 private:
  Ranges uids_;
  Ranges gids_;
  uint32_t other_uid_ = 0;
  uint32_t other_gid_ = 0;
};

}  // namespace berth::erofs
