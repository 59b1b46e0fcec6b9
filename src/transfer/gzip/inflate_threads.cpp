// SPDX-License-Identifier: Apache-2.0
#include "transfer/gzip/inflate_threads.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "sys/machine/processors.hpp"
#include "transfer/gzip/parallel_inflate.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMostForced = 64;

uint64_t memory_of(size_t threads) {
  return ParallelGzip::Options{.threads = threads}.memory();
}

bool hashes_fast() {
#ifdef __x86_64__
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
#else
  return true;  // 64-bit ARM servers do
#endif
}

}  // namespace

size_t spare_processors() {
  return hashes_fast() ? sys::usable_processors() : 0;
}

Result<InflateThreads> InflateThreads::make(size_t processors, uint64_t memory,
                                            std::string_view forced) {
  InflateThreads threads;
  threads.free_ = processors - std::min(processors, kBusy);
  threads.memory_ = memory;
  if (forced.empty()) return threads;
  auto number = parse_u64(forced);
  if (!number || *number > kMostForced) {
    return make_error(Kind::usage, "BERTH_INFLATE_THREADS: expected a number of at most " +
                                       std::to_string(kMostForced) + ", got " + quote(forced));
  }
  threads.forced_ = std::max<size_t>(1, *number);
  return threads;
}

size_t InflateThreads::take(uint64_t size) {
  if (forced_) return *forced_;
  if (size < kLargeBlob) return 1;
  size_t threads = std::min(free_, kMost);
  while (threads >= kLeast && memory_of(threads) > memory_) --threads;
  if (threads < kLeast) return 1;
  free_ -= threads;
  memory_ -= memory_of(threads);
  return threads;
}

void InflateThreads::give_back(size_t threads) {
  if (forced_ || threads == 1) return;
  free_ += threads;
  memory_ += memory_of(threads);
}

}  // namespace berth::transfer
