// SPDX-License-Identifier: Apache-2.0
// What a program gets of the first GPU, as one line of JSON; the status is 0 if a kernel computed
// what it should.
//
//     card                     computes once
//     card memory MEBIBYTES    allocates up to so much first, and tells how much it got
//     card hold SECONDS        computes, tells, and keeps the GPU open
//
// Compiled for one architecture or PTX version each, to compare the verdicts of `berth match` with
// a GPU; with the toolkits 11.2 to 12.4.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int kThreads = 256;
static const size_t kMebibyte = 1 << 20;

__global__ void double_all(int* values) {
  values[threadIdx.x] *= 2;
}

struct Answer {
  cudaError_t error = cudaSuccess;
  const char* at = "";  // the call that failed
  long sum = 0;
};

// The first error of the steps, if there is one.
static bool fails(Answer& answer, cudaError_t error, const char* at) {
  if (error == cudaSuccess) return false;
  answer.error = error;
  answer.at = at;
  return true;
}

static Answer compute() {
  Answer answer;
  int values[kThreads], *device = nullptr;
  for (int at = 0; at < kThreads; ++at) values[at] = at;
  if (fails(answer, cudaMalloc((void**)&device, sizeof values), "cudaMalloc")) return answer;
  if (fails(answer, cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice),
            "cudaMemcpy"))
    return answer;
  double_all<<<1, kThreads>>>(device);
  if (fails(answer, cudaGetLastError(), "launch")) return answer;
  if (fails(answer, cudaDeviceSynchronize(), "cudaDeviceSynchronize")) return answer;
  if (fails(answer, cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost),
            "cudaMemcpy"))
    return answer;
  cudaFree(device);
  for (int at = 0; at < kThreads; ++at) answer.sum += values[at];
  return answer;
}

// How many MiB of `wanted` can be had, in pieces of 64, which are kept.
static long allocate(long wanted) {
  const long piece = 64;
  long got = 0;
  void* memory = nullptr;
  while (got + piece <= wanted && cudaMalloc(&memory, piece * kMebibyte) == cudaSuccess)
    got += piece;
  cudaGetLastError();
  return got;
}

int main(int argc, char** argv) {
  const char* task = argc > 2 ? argv[1] : "";
  int runtime = 0, driver = 0, count = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  cudaError_t found = cudaGetDeviceCount(&count);
  long allocated = strcmp(task, "memory") == 0 ? allocate(atol(argv[2])) : 0;
  Answer answer = compute();
  cudaDeviceProp is = cudaDeviceProp();
  size_t free_bytes = 0, total = 0;
  if (count > 0 && cudaGetDeviceProperties(&is, 0) == cudaSuccess)
    cudaMemGetInfo(&free_bytes, &total);
  const bool right = answer.error == cudaSuccess && answer.sum == (long)kThreads * (kThreads - 1);
  printf(
      "{\"right\": %s, \"sum\": %ld, \"error\": %d, \"message\": \"%s\", \"at\": \"%s\", "
      "\"count\": %d, "
      "\"count_error\": %d, \"runtime\": %d, \"driver\": %d, \"name\": \"%s\", \"capability\": "
      "\"%d.%d\", "
      "\"multiprocessors\": %d, \"pci\": \"%04x:%02x:%02x.0\", \"total_mib\": %zu, \"free_mib\": "
      "%zu, "
      "\"allocated_mib\": %ld}\n",
      right ? "true" : "false", answer.sum, answer.error, cudaGetErrorName(answer.error), answer.at,
      count, found, runtime, driver, is.name, is.major, is.minor, is.multiProcessorCount,
      is.pciDomainID, is.pciBusID, is.pciDeviceID, total / kMebibyte, free_bytes / kMebibyte,
      allocated);
  fflush(stdout);
  if (strcmp(task, "hold") == 0) sleep((unsigned)atoi(argv[2]));
  return right ? 0 : 1;
}
