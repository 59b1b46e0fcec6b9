// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities held: those of the caller; none is used. Hostile input:
// none.
#include "runtime/seccomp/bpf_filter.hpp"

#include <linux/seccomp.h>

#include <algorithm>

#include "base/assert.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kLongestJump = 255;
// A return (BPF_RET) further away than this is not reused, because reaching it may need an extra
// jump.
constexpr size_t kNearGive = 200;

uint32_t low_half(uint64_t value) {
  return static_cast<uint32_t>(value);
}
uint32_t high_half(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

}  // namespace

FilterBuilder::Label FilterBuilder::write(uint16_t code, uint32_t value, uint8_t yes, uint8_t no) {
  reversed_.push_back(sock_filter{code, yes, no, value});
  return reversed_.size() - 1;
}

uint8_t FilterBuilder::distance(Label target) const {
  size_t between = reversed_.size() - target - 1;
  BERTH_ASSERT(target < reversed_.size() && between <= kLongestJump);
  return static_cast<uint8_t>(between);
}

/// Returns `target`, or a jump to `target`, so that a conditional jump can reach it even after
/// `instructions_before_use` more instructions.
FilterBuilder::Label FilterBuilder::near(Label target, size_t instructions_before_use) {
  size_t between = reversed_.size() - target - 1;
  if (between + instructions_before_use <= kLongestJump) return target;
  return write(BPF_JMP | BPF_JA, static_cast<uint32_t>(between));
}

FilterBuilder::Label FilterBuilder::give(uint32_t action) {
  auto known = std::ranges::find_if(given_, [&](const auto& one) { return one.first == action; });
  if (known == given_.end()) {
    given_.emplace_back(action, write(BPF_RET | BPF_K, action));
    return given_.back().second;
  }
  if (reversed_.size() - known->second > kNearGive) known->second = write(BPF_RET | BPF_K, action);
  return known->second;
}

FilterBuilder::Label FilterBuilder::load(uint32_t offset, Label next) {
  size_t between = reversed_.size() - next - 1;
  if (between > 0) write(BPF_JMP | BPF_JA, static_cast<uint32_t>(between));
  return write(BPF_LD | BPF_W | BPF_ABS, offset);
}

FilterBuilder::Label FilterBuilder::jump(uint16_t code, uint32_t value, Label yes, Label no) {
  yes = near(yes, 1);  // 1, because the way to `no` may need a jump, too
  no = near(no, 0);
  return write(static_cast<uint16_t>(BPF_JMP | BPF_K | code), value, distance(yes), distance(no));
}

FilterBuilder::Label FilterBuilder::test(const Condition& condition, Label yes, Label no) {
  // Both halves of an argument; seccomp_data has the byte order of the machine.
  constexpr bool kLittle = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  uint32_t low_at =
      static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * condition.index + (kLittle ? 0 : 4);
  uint32_t high_at = low_at ^ 4U;
  uint32_t low = low_half(condition.value);
  uint32_t high = high_half(condition.value);

  // `ordered` compares the low halves when the high halves are equal, else the high halves.
  auto ordered = [&](uint16_t low_code, Label above, Label below) {
    Label low_part = load(low_at, jump(low_code, low, above, below));
    Label not_above = jump(BPF_JEQ, high, low_part, below);
    return load(high_at, jump(BPF_JGT, high, above, not_above));
  };
  auto equal = [&](Label same, Label other) {
    Label low_part = load(low_at, jump(BPF_JEQ, low, same, other));
    return load(high_at, jump(BPF_JEQ, high, low_part, other));
  };
  auto masked_half = [&](uint32_t at, uint32_t mask, uint32_t expected, Label same, Label other) {
    if (mask == 0) return expected == 0 ? same : other;
    Label compare = jump(BPF_JEQ, expected, same, other);
    BERTH_ASSERT(compare == reversed_.size() - 1);
    write(BPF_ALU | BPF_AND | BPF_K, mask);
    return write(BPF_LD | BPF_W | BPF_ABS, at);
  };

  switch (condition.comparison) {
    case Comparison::equal:
      return equal(yes, no);
    case Comparison::not_equal:
      return equal(no, yes);
    case Comparison::greater:
      return ordered(BPF_JGT, yes, no);
    case Comparison::greater_or_equal:
      return ordered(BPF_JGE, yes, no);
    case Comparison::less:
      return ordered(BPF_JGE, no, yes);
    case Comparison::less_or_equal:
      return ordered(BPF_JGT, no, yes);
    case Comparison::masked_equal: {
      Label low_part = masked_half(low_at, low, low_half(condition.value_two), yes, no);
      return masked_half(high_at, high, high_half(condition.value_two), low_part, no);
    }
  }
  BERTH_ASSERT(false);
}

std::vector<sock_filter> FilterBuilder::finish(Label entry) && {
  BERTH_ASSERT(entry == reversed_.size() - 1);
  std::ranges::reverse(reversed_);
  return std::move(reversed_);
}

}  // namespace berth::runtime
