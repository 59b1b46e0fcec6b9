// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <stdexcept>

#include "bench/common/cuda_check.hpp"
#include "bench/pooling/mean.hpp"
#include "bench/pooling/pooling.hpp"

namespace berth::bench {
namespace {

constexpr unsigned kEdge = 16;  // of a block of threads; 256 suit every GPU

__global__ void pool_once(const float* from, float* to, int64_t side) {
  int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < side && column < side) {
    to[row * side + column] = mean_of_neighbours(from, side, row, column);
  }
}

/// Memory of the GPU.
struct DeviceMatrix {
  explicit DeviceMatrix(size_t bytes) {
    check(cudaMalloc(reinterpret_cast<void**>(&data), bytes), "cudaMalloc");
  }
  ~DeviceMatrix() { cudaFree(data); }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;
  float* data = nullptr;
};

}  // namespace

const char* const kPoolingDevice = "cuda";

void pool(std::vector<float>& matrix, int64_t side, uint64_t passes, size_t) {
  size_t bytes = matrix.size() * sizeof(float);
  DeviceMatrix one(bytes), other(bytes);
  float *from = one.data, *to = other.data;
  check(cudaMemcpy(from, matrix.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the GPU");
  auto blocks = static_cast<unsigned>((side + kEdge - 1) / kEdge);
  for (uint64_t pass = 0; pass < passes; ++pass) {
    pool_once<<<dim3(blocks, blocks), dim3(kEdge, kEdge)>>>(from, to, side);
    float* written = to;
    to = from;
    from = written;
  }
  check(cudaGetLastError(), "launch of pool_once");
  check(cudaMemcpy(matrix.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the GPU");
}

}  // namespace berth::bench
