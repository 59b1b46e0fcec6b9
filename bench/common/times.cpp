// SPDX-License-Identifier: Apache-2.0
#include "bench/common/times.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

namespace berth::bench {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::string times_as_json(std::chrono::steady_clock::time_point begin) {
  std::chrono::duration<double> real = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return fmt::format(R"("real_s": {:.6f}, "user_s": {:.6f}, "system_s": {:.6f})", real.count(),
                     seconds(usage.ru_utime), seconds(usage.ru_stime));
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  }
  return found;
}

size_t allowed_processor_count() {
  return std::max<size_t>(1, allowed_processors().size());
}

}  // namespace berth::bench
