// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace berth::bench {

/// Errors: std::runtime_error, "cudaMalloc: out of memory". A benchmark can only end then; what
/// nvcc compiles is C++17, which our Result is not.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

}  // namespace berth::bench
