// SPDX-License-Identifier: Apache-2.0
// bench_pooling_cpu, bench_pooling_cuda: mean pooling, and what it took, as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/common/arguments.hpp"
#include "bench/common/times.hpp"
#include "bench/pooling/pooling.hpp"

namespace berth::bench {
namespace {

Result<void> run(int argc, char** argv) {
  auto begin = std::chrono::steady_clock::now();
  uint64_t side = 4096, passes = 256, threads = allowed_processor_count();
  TRY(parse(argc, argv,
            {{.name = "side", .number = &side, .lowest = 2, .highest = 32768},
             {.name = "passes", .number = &passes, .lowest = 1, .highest = 1'000'000},
             {.name = "threads", .number = &threads, .lowest = 1, .highest = 1024}}));
  auto matrix = first_matrix(static_cast<int64_t>(side));
  pool(matrix, static_cast<int64_t>(side), passes, threads);
  fmt::print(R"({{"program": "pooling", "device": "{}", "side": {}, "passes": {}, "threads": {}, )"
             R"("processors": [{}], "checksum": {:.9g}, {}}})"
             "\n",
             kPoolingDevice, side, passes, threads, fmt::join(allowed_processors(), ", "),
             checksum(matrix), times_as_json(begin));
  return {};
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  using namespace berth::bench;
  return exit_status(fmt::format("bench_pooling_{}", kPoolingDevice),
                     [=] { return run(argc, argv); });
}
