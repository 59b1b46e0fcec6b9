// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/occupancy.hpp"

#include <algorithm>

namespace berth::gpu {
namespace {

bool is_part_of(std::string_view part, std::string_view whole) {
  return part.size() > whole.size() && part.starts_with(whole) && part[whole.size()] == '/';
}

/// Whether `one` belongs to the requester's group.
bool is_of_group(const Occupancy& occupancy, const Holding& one) {
  bool same = !occupancy.group.empty() && one.group == occupancy.group;
  same = same || (!occupancy.given_by.empty() && one.group.starts_with(occupancy.given_by));
  return same && (occupancy.all_users || one.user == occupancy.user);
}

}  // namespace

bool overlaps(std::string_view key, std::string_view other) {
  return key == other || is_part_of(key, other) || is_part_of(other, key);
}

const Holding* find_obstacle(const Occupancy& occupancy, std::string_view key, bool exclusive) {
  for (const Holding& one : occupancy.held) {
    if (!is_of_group(occupancy, one) && (exclusive || one.exclusive) && overlaps(one.key, key))
      return &one;
  }
  return nullptr;
}

bool has_outsider(const Occupancy& occupancy, std::string_view key) {
  return std::ranges::any_of(occupancy.held, [&](const Holding& one) {
    return is_outside(one) && overlaps(one.key, key);
  });
}

uint32_t count_users(const Occupancy& occupancy, std::string_view key) {
  return static_cast<uint32_t>(std::ranges::count_if(
      occupancy.held, [&](const Holding& one) { return overlaps(one.key, key); }));
}

}  // namespace berth::gpu
