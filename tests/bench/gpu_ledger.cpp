// SPDX-License-Identifier: Apache-2.0
// bench_gpu_ledger DIRECTORY HOLDERS: what a lease adds to the start and the end of a container, in
// a ledger in DIRECTORY, of a machine with eight GPUs and HOLDERS other containers that have some.
// All that berth, berth-runtime and berth-monitor do about it is done, in one process: opening the
// ledger, choosing and taking, finding it again, naming the container's first process, holding it,
// letting it go. Prints JSON: the first time, the median and 90th percentile of a thousand more, in
// microseconds.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "gpu/ledger/chooser.hpp"

namespace {

using berth::Result;
namespace gpu = berth::gpu;

constexpr size_t kRounds = 1000;
constexpr uint32_t kGpus = 8;

gpu::Inventory machine() {
  gpu::Inventory inventory;
  inventory.driver.module_version = "570.133.20";
  for (uint32_t index = 0; index < kGpus; ++index) {
    gpu::Gpu& gpu = inventory.gpus.emplace_back();
    gpu.index = index;
    gpu.pci_address = "0000:" + std::to_string(10 + index) + ":00.0";
  }
  return inventory;
}

gpu::Request two_gpus() {
  gpu::Request request;
  request.want = gpu::Request::Want::count;
  request.count = 2;
  return request;
}

Result<gpu::HeldLease> take(const gpu::Ledger& ledger, const gpu::Inventory& inventory,
                            const std::string& container) {
  gpu::Chooser chooser(two_gpus(), inventory, {});
  TRY(chooser.wanted());
  gpu::Lease lease;
  lease.container = lease.group = container;
  lease.engine = "berth";
  return ledger.take(std::move(lease), [&](const gpu::Holders& holders, gpu::Lease& chosen) {
    return chooser.choose(holders, chosen);
  });
}

Result<double> one_container(const std::string& directory, const gpu::Inventory& inventory) {
  auto before = std::chrono::steady_clock::now();
  gpu::Ledger ledger = TRY(gpu::Ledger::open(directory + "/ledger", directory));
  {
    gpu::HeldLease berths = TRY(take(ledger, inventory, "measured"));
    gpu::Ledger again = TRY(gpu::Ledger::open(directory + "/ledger", directory));
    gpu::HeldLease runtimes = TRY(again.hold_again(berths.file(), berths.lease()));
    gpu::Here here = TRY(gpu::look_around());
    gpu::Life life = TRY(gpu::life_of(::getpid(), "", here));
    TRY(again.set_life(runtimes, std::move(life)));
    runtimes.leave();
    // As if it had ended.
    TRY(ledger.set_life(berths, gpu::Life()));
  }
  std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - before;
  return taken.count();
}

Result<void> measure(const std::string& directory, uint64_t holders) {
  const gpu::Inventory inventory = machine();
  gpu::Ledger ledger = TRY(gpu::Ledger::open(directory + "/ledger", directory));
  std::vector<gpu::HeldLease> others;
  for (uint64_t i = 0; i < holders; ++i) {
    others.push_back(TRY(take(ledger, inventory, "other-" + std::to_string(i))));
  }
  double first = TRY(one_container(directory, inventory));
  std::vector<double> all;
  for (size_t i = 0; i < kRounds; ++i) all.push_back(TRY(one_container(directory, inventory)));
  std::sort(all.begin(), all.end());
  std::printf("{\"first_us\": %.1f, \"median_us\": %.1f, \"p90_us\": %.1f, \"rounds\": %zu}\n",
              first, all[kRounds / 2], all[kRounds * 9 / 10], kRounds);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto holders = argc == 3 ? berth::parse_u64(argv[2]) : std::nullopt;
  if (!holders) {
    std::fputs("usage: bench_gpu_ledger DIRECTORY HOLDERS\n", stderr);
    return 2;
  }
  auto done = measure(argv[1], *holders);
  if (done.ok()) return 0;
  std::fprintf(stderr, "bench_gpu_ledger: %s\n", berth::to_line(done.error()).c_str());
  return 1;
}
