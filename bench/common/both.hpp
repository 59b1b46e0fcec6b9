// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what runs on processors and, compiled by nvcc, on GPUs too: one source of the arithmetic.
#ifdef __CUDACC__
#define BENCH_BOTH __host__ __device__
#else
#define BENCH_BOTH
#endif
