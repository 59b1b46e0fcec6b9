// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/pick.hpp"

#include <algorithm>

namespace berth::gpu {
namespace {

/// Up to this number of candidate sets, every set is examined. If there are more, one set is built
/// greedily.
constexpr uint64_t kMostSets = 20000;

/// A holder without a lease counts as more than all containers together.
constexpr uint32_t kOutsider = 1U << 30;

bool contains(const std::vector<uint32_t>& many, uint32_t one) {
  return std::ranges::find(many, one) != many.end();
}

int closeness(const Gpu& a, const Gpu& b) {
  if (&a == &b) return 4;
  if (contains(a.nvlink_peers, b.index) || contains(b.nvlink_peers, a.index)) return 3;
  if (!a.board.empty() && a.board == b.board) return 2;
  return a.numa_node && a.numa_node == b.numa_node ? 1 : 0;
}

/// The quality of a set: higher is better, and the first number counts before the second.
struct Score {
  int near = 0;
  int close = 0;
  auto operator<=>(const Score&) const = default;
};

class Picker {
 public:
  Picker(const std::vector<Selected>& candidates, size_t count, const Occupancy& occupancy)
      : candidates_(candidates),
        occupancy_(occupancy),
        count_(std::min(count, candidates.size())) {}

  std::vector<Selected> run();

 private:
  void take_least_used();
  uint64_t count_sets(uint64_t most) const;
  void try_all();
  void grow();
  Score score(const std::vector<size_t>& set) const;
  int nearness(size_t one) const;

  const std::vector<Selected>& candidates_;
  const Occupancy& occupancy_;
  size_t count_;
  std::vector<size_t> picked_;  ///< have so few holders that they are picked in any case
  std::vector<size_t> equals_;  ///< have equally many holders: the rest is picked from these
};

int Picker::nearness(size_t one) const {
  const auto& node = candidates_[one].gpu->numa_node;
  const auto& near = occupancy_.near;
  return node && std::ranges::find(near, *node) != near.end() ? 1 : 0;
}

Score Picker::score(const std::vector<size_t>& set) const {
  Score score;
  for (size_t i = 0; i < set.size(); ++i) {
    score.near += nearness(set[i]);
    for (size_t j = i + 1; j < set.size(); ++j) {
      score.close += closeness(*candidates_[set[i]].gpu, *candidates_[set[j]].gpu);
    }
  }
  return score;
}

void Picker::take_least_used() {
  std::vector<uint32_t> users;
  const std::vector<std::string>& own = occupancy_.own;
  for (const Selected& one : candidates_) {
    const std::string key = key_of(one);
    bool kept = std::ranges::find(own, key) != own.end();
    uint32_t others = count_users(occupancy_, key);
    if (has_outsider(occupancy_, key)) others += kOutsider;
    users.push_back(kept ? 0 : 1 + others);
  }
  std::vector<uint32_t> sorted = users;
  std::ranges::sort(sorted);
  uint32_t limit = sorted[count_ - 1];
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i] < limit) picked_.push_back(i);
    if (users[i] == limit) equals_.push_back(i);
  }
}

/// The number of possible sets of the GPUs that are still to be picked; `most` + 1 if there are
/// more than `most`.
uint64_t Picker::count_sets(uint64_t most) const {
  uint64_t sets = 1;
  size_t missing = count_ - picked_.size();
  for (size_t i = 0; i < missing; ++i) {
    sets = sets * (equals_.size() - i) / (i + 1);
    if (sets > most * equals_.size()) return most + 1;
  }
  return std::min(sets, most + 1);
}

void Picker::try_all() {
  const size_t missing = count_ - picked_.size();
  std::vector<bool> taken(equals_.size(), false);
  std::fill_n(taken.begin(), missing, true);
  std::optional<Score> best;
  std::vector<size_t> best_set;
  do {
    std::vector<size_t> set = picked_;
    for (size_t i = 0; i < equals_.size(); ++i) {
      if (taken[i]) set.push_back(equals_[i]);
    }
    Score found = score(set);
    if (best && found <= *best) continue;
    best = found;
    best_set = std::move(set);
  } while (std::prev_permutation(taken.begin(), taken.end()));
  picked_ = std::move(best_set);
}

void Picker::grow() {
  while (picked_.size() < count_) {
    auto gain = [&](size_t one) {
      std::vector<size_t> with = picked_;
      with.push_back(one);
      return score(with);
    };
    auto best =
        std::ranges::max_element(equals_, [&](size_t a, size_t b) { return gain(a) < gain(b); });
    picked_.push_back(*best);
    equals_.erase(best);
  }
}

std::vector<Selected> Picker::run() {
  if (count_ == 0) return {};
  take_least_used();
  if (count_sets(kMostSets) <= kMostSets) {
    try_all();
  } else {
    grow();
  }
  std::ranges::sort(picked_);
  std::vector<Selected> out;
  for (size_t one : picked_) out.push_back(candidates_[one]);
  return out;
}

}  // namespace

std::vector<Selected> pick_least_used(const std::vector<Selected>& candidates, size_t count,
                                      const Occupancy& occupancy) {
  return Picker(candidates, count, occupancy).run();
}

}  // namespace berth::gpu
