// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/cuda_check.hpp"
#include "bench/networks/device.hpp"
#include "bench/networks/elements.hpp"

namespace berth::bench {
namespace {

constexpr int kThreads = 256;       // of a block
constexpr int64_t kBlocks = 65536;  // more elements are walked over by the same threads

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": cuBLAS status " + std::to_string(status));
  }
}

template <class Element>
__global__ void walk(int64_t count, int columns, Element element) {
  int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; at < count; at += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    element(static_cast<int>(at / columns), static_cast<int>(at % columns));
  }
}

cublasOperation_t operation(const Matrix& matrix) {
  return matrix.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

struct Device::State {
  State() { check(cublasCreate(&handle), "cublasCreate"); }
  ~State() {
    for (float* piece : memory) cudaFree(piece);
    cublasDestroy(handle);
  }
  cublasHandle_t handle = nullptr;
  std::vector<float*> memory;
};

const char* const Device::kName = "cuda";

Device::Device(size_t) : state_(std::make_unique<State>()) {}
Device::~Device() = default;

float* Device::allocate(size_t count) {
  float* piece = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&piece), count * sizeof(float)), "cudaMalloc");
  state_->memory.push_back(piece);
  check(cudaMemset(piece, 0, count * sizeof(float)), "cudaMemset");
  return piece;
}

void Device::upload(const float* from, float* to, size_t count) {
  check(cudaMemcpy(to, from, count * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
}

void Device::download(const float* from, float* to, size_t count) {
  check(cudaMemcpy(to, from, count * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void Device::wait() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// cuBLAS takes columns for rows: to it, what we store row by row is turned. (a · b) turned is
// b turned · a turned, so it gets b first, and both as they lie.
void Device::multiply(const Matrix& a, const Matrix& b, float* to) {
  const float one = 1, zero = 0;
  check(cublasSgemm(state_->handle, operation(b), operation(a), b.seen_columns(), a.seen_rows(),
                    a.seen_columns(), &one, b.data, b.columns, a.data, a.columns, &zero, to,
                    b.seen_columns()),
        "cublasSgemm");
}

template <class Element>
void Device::each(int rows, int columns, const Element& element) {
  int64_t count = static_cast<int64_t>(rows) * columns;
  auto blocks = std::min((count + kThreads - 1) / kThreads, kBlocks);
  walk<<<static_cast<unsigned>(blocks), kThreads>>>(count, columns, element);
  check(cudaGetLastError(), "launch");
}

#define BENCH_INSTANTIATE(Element) template void Device::each(int, int, const Element&);
BENCH_ELEMENTS(BENCH_INSTANTIATE)

}  // namespace berth::bench
