// SPDX-License-Identifier: Apache-2.0
// bench_inventory_check --driver-root DIR --state DIR: what a start pays to learn that the cached
// inventory is still true, and to read it. Prints JSON: the time of the first check of this
// process, and the median and 90th percentile of a thousand more, in microseconds.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "gpu/inventory/cache.hpp"
#include "sys/file/file.hpp"

namespace {

using berth::Result;
namespace gpu = berth::gpu;
namespace sys = berth::sys;

constexpr size_t kRounds = 1000;

Result<double> microseconds_of_a_check(const std::string& driver_root, const std::string& state) {
  auto before = std::chrono::steady_clock::now();
  auto root = TRY(gpu::DriverRoot::open(driver_root));
  auto directory = TRY(sys::open_at(sys::cwd(), state + "/gpu", O_RDONLY | O_DIRECTORY));
  auto inventory = TRY(gpu::find_cached(directory, root, {}));
  std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - before;
  if (!inventory) {
    return berth::make_error(berth::Kind::not_found, "there is no valid inventory in " + state,
                             "berth gpu list");
  }
  return taken.count();
}

Result<void> measure(const std::string& driver_root, const std::string& state) {
  double first = TRY(microseconds_of_a_check(driver_root, state));
  std::vector<double> all;
  for (size_t i = 0; i < kRounds; ++i) {
    all.push_back(TRY(microseconds_of_a_check(driver_root, state)));
  }
  std::sort(all.begin(), all.end());
  std::printf("{\"first_us\": %.1f, \"median_us\": %.1f, \"p90_us\": %.1f, \"rounds\": %zu}\n",
              first, all[kRounds / 2], all[kRounds * 9 / 10], kRounds);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  bool right = argc == 5 && std::strcmp(argv[1], "--driver-root") == 0 &&
               std::strcmp(argv[3], "--state") == 0;
  if (!right) {
    std::fputs("usage: bench_inventory_check --driver-root DIR --state DIR\n", stderr);
    return 2;
  }
  auto done = measure(argv[2], argv[4]);
  if (!done.ok()) {
    std::fprintf(stderr, "bench_inventory_check: %s\n", berth::to_line(done.error()).c_str());
    return 1;
  }
  return 0;
}
