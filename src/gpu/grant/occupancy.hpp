// SPDX-License-Identifier: Apache-2.0
// The containers and processes that hold GPUs, as far as they affect the next choice. Pure;
// gpu/ledger collects them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::gpu {

/// A GPU, a slice or a partition that is held or reserved.
struct Holding {
  std::string key;     ///< key_of() in gpu/inventory
  std::string holder;  ///< for people: "container 'web' of user 1000"
  std::string group;   ///< name of a group of containers that share their GPUs; empty: not a
                       ///< container
  bool exclusive = false;
  uid_t user = 0;  ///< the holder's user id, from the kernel
};

/// Whether the holder is not a container with a lease (gpu/ledger). It is unknown then how much of
/// the GPU it needs.
inline bool is_outside(const Holding& one) {
  return one.group.empty();
}

struct Occupancy {
  std::vector<Holding> held;
  std::string group;       ///< the requester's group; holdings of the same group are not an
                           ///< obstacle
  uid_t user = 0;          ///< the requester's user id; a group belongs to one user
  bool all_users = false;  ///< the requester is root: its group may have members of any user
  std::string given_by{};  ///< holders whose group begins so have given the GPUs to the requester
  std::vector<std::string> own;  ///< keys that the requester holds, and keeps if possible
  std::vector<int> near;         ///< NUMA nodes of the requested processors; empty: no preference
};

/// Whether these keys name the same GPU, or one key names a part of the GPU of the other key.
bool overlaps(std::string_view key, std::string_view other);

/// The holding that prevents the requester from getting `key` (or from getting it alone, if
/// `exclusive`). Null: none.
const Holding* find_obstacle(const Occupancy& occupancy, std::string_view key, bool exclusive);

/// Whether a holder without a lease has `key` or a part of it.
bool has_outsider(const Occupancy& occupancy, std::string_view key);

/// The number of holders of `key` or of a part of it.
uint32_t count_users(const Occupancy& occupancy, std::string_view key);

}  // namespace berth::gpu
