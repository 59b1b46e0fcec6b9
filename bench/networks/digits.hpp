// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::bench {

/// Pictures of digits and what they show, in two files of MNIST's form, which stay where they are:
/// each batch is read anew. tests/support/digits.py writes such files.
/// Source: the IDX format, https://yann.lecun.com/exdb/mnist/ (big-endian numbers, then bytes).
class Digits {
 public:
  static constexpr int kSide = 28;

  /// Opens train-images-idx3-ubyte and train-labels-idx1-ubyte of `directory`.
  /// Errors: not_found, corrupt (another form, or not as many labels as pictures).
  static Result<Digits> open(const std::string& directory);

  int count() const { return count_; }

  /// Batch `number` of `images` pictures, from the beginning again after the last whole one.
  /// Shape: pixels, images × 28 × 28 numbers of 0 to 1; labels, images.
  /// Errors: usage (fewer pictures than a batch has), corrupt (a file ends early).
  Result<void> read(uint64_t number, int images, float* pixels, float* labels);

 private:
  std::ifstream pictures_, labels_;
  int count_ = 0;
  std::vector<char> bytes_;
};

}  // namespace berth::bench
