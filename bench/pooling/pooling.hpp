// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// The benchmark of "Containerized GPU": a matrix of 4096 × 4096, 256 times; "an element is updated
// with mean of its left, right, top and bottom elements". There is one definition for processors
// and one for GPUs; a program links either.
namespace berth::bench {

/// "cpu" or "cuda".
extern const char* const kPoolingDevice;

/// Replaces every element of `matrix` by the mean of its neighbours, `passes` times; a pass reads
/// only what the pass before it wrote, so that the result does not depend on the threads.
/// Shape: side × side, row by row, at least 2 × 2. A GPU takes no notice of `threads`.
/// Errors: std::runtime_error with what CUDA says.
void pool(std::vector<float>& matrix, int64_t side, uint64_t passes, size_t threads);

/// A matrix to begin with: numbers of 0 to 1 that depend on the place alone.
std::vector<float> first_matrix(int64_t side);

/// The sum of all elements, in an order that is always the same.
double checksum(const std::vector<float>& matrix);

}  // namespace berth::bench
