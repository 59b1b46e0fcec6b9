// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace berth::runtime {

/// How a condition compares an argument with its value.
enum class Comparison {
  not_equal,
  less,
  less_or_equal,
  equal,
  greater_or_equal,
  greater,
  masked_equal,  ///< (argument & value) == value_two
};

/// One condition on one argument of a system call, all 64 bits, unsigned.
struct Condition {
  uint32_t index = 0;  ///< 0 to 5
  Comparison comparison = Comparison::equal;
  uint64_t value = 0;
  uint64_t value_two = 0;
};

/// Writes a classic BPF program over struct seccomp_data from its end to its beginning: jumps go
/// forward only, so every target is known when a jump is written. A jump longer than the 255
/// instructions of a conditional jump goes through an unconditional one.
class FilterBuilder {
 public:
  /// An instruction that is already written, as the target of a jump.
  using Label = size_t;

  /// Ends the program with `action` (SECCOMP_RET_*); reuses an existing return of this action if
  /// one is near.
  Label give(uint32_t action);

  /// Loads the 32-bit word at `offset` of seccomp_data, then goes to `next`.
  Label load(uint32_t offset, Label next);

  /// Compares the loaded word with `value`; `code` is BPF_JEQ, BPF_JGE, BPF_JGT or BPF_JSET.
  Label jump(uint16_t code, uint32_t value, Label yes, Label no);

  /// Goes to `yes` when `condition` holds, else to `no`.
  Label test(const Condition& condition, Label yes, Label no);

  size_t size() const { return reversed_.size(); }

  /// The program that starts at `entry`, which must be the label written last.
  std::vector<sock_filter> finish(Label entry) &&;

 private:
  Label write(uint16_t code, uint32_t value, uint8_t yes = 0, uint8_t no = 0);
  Label near(Label target, size_t instructions_before_use);
  uint8_t distance(Label target) const;

  std::vector<sock_filter> reversed_;
  std::vector<std::pair<uint32_t, Label>> given_;
};

}  // namespace berth::runtime
