// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/reader.hpp"
#include "sys/user_namespace.hpp"

namespace berth::erofs {

/// Whom the files of an image belong to for the people of a user namespace. Its own ids stay what
/// they are. What it has no id for belongs to its 65534, or, where that is none of its ids either,
/// to the caller: with a single id everything does, as with layers that such a user unpacks.
class Owners {
 public:
  using Ranges = std::vector<sys::IdRange>;
  Owners(Ranges uids, Ranges gids, uint32_t own_uid, uint32_t own_gid);
  /// Of this process's user namespace.  Errors: io.
  static Result<Owners> of_this_process();

  /// Puts owners that the namespace has in the place of others, and takes away the set-id bits that
  /// meant those.
  void settle(Inode& inode) const;

  /// Whether the namespace has an id for each that an access list (system.posix_acl_*) names.
  bool know_all_of(std::string_view acl) const;

  /// `mode` as it is where nobody can be told of the list: without what that grants to the people
  /// that it names alone, and for group and others no more than those have that are known.
  uint32_t without_list(uint32_t mode, std::string_view acl) const;

 private:
  Ranges uids_;
  Ranges gids_;
  uint32_t other_uid_ = 0;
  uint32_t other_gid_ = 0;
};

}  // namespace berth::erofs
