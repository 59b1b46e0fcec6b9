// SPDX-License-Identifier: Apache-2.0
// Each thread gets a part of every product and of every walk over elements; Eigen's own threads
// (OpenMP) are not used.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <algorithm>

#include "bench/common/threads.hpp"
#include "bench/networks/device.hpp"
#include "bench/networks/elements.hpp"

namespace berth::bench {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor>;

constexpr int64_t kShare = 16;       // rows or columns of a product: a cache line of floats
constexpr int64_t kElements = 4096;  // of a walk, below which a second thread is not worth waking

/// Calls `use` with the matrix, or with what it is when turned.
template <class Use>
void as_seen(const Matrix& matrix, const Use& use) {
  View view(matrix.data, matrix.rows, matrix.columns);
  if (matrix.turned) {
    use(view.transpose());
  } else {
    use(view);
  }
}

}  // namespace

struct Device::State {
  explicit State(size_t count) : threads(count) {}
  Threads threads;
  std::vector<std::unique_ptr<float[]>> memory;
};

const char* const Device::kName = "cpu";

Device::Device(size_t threads) : state_(std::make_unique<State>(threads)) {}
Device::~Device() = default;

float* Device::allocate(size_t count) {
  return state_->memory.emplace_back(std::make_unique<float[]>(count)).get();
}

void Device::upload(const float* from, float* to, size_t count) {
  std::copy_n(from, count, to);
}
void Device::download(const float* from, float* to, size_t count) {
  std::copy_n(from, count, to);
}
void Device::wait() {}

void Device::multiply(const Matrix& a, const Matrix& b, float* to) {
  Eigen::Map<RowMajor> product(to, a.seen_rows(), b.seen_columns());
  as_seen(a, [&](const auto& left) {
    as_seen(b, [&](const auto& right) {
      if (product.rows() < product.cols()) {
        state_->threads.share(product.cols(), kShare, [&](int64_t first, int64_t last) {
          product.middleCols(first, last - first).noalias() =
              left * right.middleCols(first, last - first);
        });
      } else {
        state_->threads.share(product.rows(), kShare, [&](int64_t first, int64_t last) {
          product.middleRows(first, last - first).noalias() =
              left.middleRows(first, last - first) * right;
        });
      }
    });
  });
}

template <class Element>
void Device::each(int rows, int columns, const Element& element) {
  int64_t count = int64_t{rows} * columns;
  state_->threads.share(count, kElements, [&](int64_t first, int64_t last) {
    const Element own = element;  // a copy that nothing can change, to be kept in registers
    while (first < last) {
      auto row = static_cast<int>(first / columns);
      auto begin = static_cast<int>(first % columns);
      auto end = static_cast<int>(std::min<int64_t>(columns, begin + (last - first)));
      for (int column = begin; column < end; ++column) own(row, column);
      first += end - begin;
    }
  });
}

#define BENCH_INSTANTIATE(Element) template void Device::each(int, int, const Element&);
BENCH_ELEMENTS(BENCH_INSTANTIATE)

}  // namespace berth::bench
