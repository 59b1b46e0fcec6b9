// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace berth::bench {

/// A matrix as it lies in memory, row by row; `turned` ones take part in a product as if rows were
/// columns.
struct Matrix {
  const float* data;
  int rows, columns;
  bool turned = false;

  int seen_rows() const { return turned ? columns : rows; }
  int seen_columns() const { return turned ? rows : columns; }
};

/// Where a network is computed: the processors, or a GPU. There is one definition for each; a
/// program links either. Memory is the device's and lives as long as it.
/// Errors: std::runtime_error with what CUDA says; std::bad_alloc.
class Device {
 public:
  /// "cpu" or "cuda".
  static const char* const kName;

  /// A GPU takes no notice of `threads`.
  explicit Device(size_t threads);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Zeros. Shape: at least 1 element.
  float* allocate(size_t count);
  void upload(const float* from, float* to, size_t count);
  void download(const float* from, float* to, size_t count);

  /// to = a · b. Shape: a.seen_columns() == b.seen_rows().
  void multiply(const Matrix& a, const Matrix& b, float* to);

  /// element(row, column) of all, in any order and at once; elements.hpp has those that there are.
  template <class Element>
  void each(int rows, int columns, const Element& element);

  /// Returns when all that was asked for is done.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// X(Element) for every element that a Device can be asked for.
#define BENCH_ELEMENTS(X) \
  X(Unfold)               \
  X(Fold)                 \
  X(BiasAndRectify)       \
  X(Unrectify)            \
  X(TakeLargest)          \
  X(GiveToLargest) X(TakeMean) X(GiveToMean) X(CrossEntropy) X(Descend) X(FillWithNoise) X(Fill)

}  // namespace berth::bench
