// SPDX-License-Identifier: Apache-2.0
// Who has which GPUs, as far as it decides what the next one gets. Pure; gpu/ledger finds it out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::gpu {

/// A GPU, a slice or a partition that somebody has, or that is kept for somebody.
struct Holding {
  std::string key;     ///< key_of() in select.hpp
  std::string holder;  ///< for people: "container 'web' of user 1000"
  std::string group;   ///< of containers that share theirs; empty: of no container
  bool exclusive = false;
  uid_t user = 0;  ///< whose it is, as the kernel says
};

/// Whether whoever has it has no lease: then nobody knows how much of the GPU he will want.
inline bool is_outside(const Holding& one) {
  return one.group.empty();
}

struct Occupancy {
  std::vector<Holding> held;
  std::string group;             ///< of who asks: what the group holds stands in nobody's way there
  uid_t user = 0;                ///< who asks: a group is one user's
  bool all_users = false;        ///< but root's word counts for everybody's
  std::vector<std::string> own;  ///< keys of what who asks has already, and keeps where he can
  std::vector<int> near;  ///< NUMA nodes of the processors that were asked for; empty: all the same
};

/// Whether these keys name the same GPU, or one a part of the other.
bool overlaps(std::string_view key, std::string_view other);

/// Whether `one` belongs to the group of who asks.
bool is_of_group(const Occupancy& occupancy, const Holding& one);

/// Why somebody who wants `key`, for itself where `exclusive`, cannot have it now; null: it can.
const Holding* find_obstacle(const Occupancy& occupancy, std::string_view key, bool exclusive);

/// Whether somebody without a lease has `key` or a part of it.
bool has_outsider(const Occupancy& occupancy, std::string_view key);

/// How many have `key` or a part of it.
uint32_t count_users(const Occupancy& occupancy, std::string_view key);

}  // namespace berth::gpu
