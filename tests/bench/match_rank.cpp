// SPDX-License-Identifier: Apache-2.0
// bench_match_rank ENTRIES: how long a verdict on an index of so many variants takes, once their
// facts are read: as a pull asks, which takes the best, and as `berth match` does, which explains
// all. Prints JSON: medians and the 90th percentile of a hundred rounds, in milliseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "node/what_if.hpp"

namespace {

using namespace berth;

constexpr size_t kRounds = 100;

/// Every axis that there is, in turn; every second entry was scanned too.
match::Candidate candidate(size_t number) {
  static constexpr const char* kCpus[] = {"x86-64-v2", "x86-64-v3", "skylake_avx512", "zen4"};
  static constexpr const char* kGpus[] = {"sm_70 sm_80", "sm_90a compute_90@8.7", "sm_100f",
                                          "sm_52", "gfx942"};
  static constexpr const char* kCudas[] = {"11.8", "12.4", "12.9", "13.0"};
  match::Candidate made;
  oci::Descriptor& entry = made.descriptor;
  std::string digits = std::to_string(number);
  entry.digest = *Digest::parse("sha256:" + std::string(64 - digits.size(), '0') + digits);
  entry.platform = oci::Platform{"amd64", "linux", {}, {}, {}};
  std::string prefix(match::kPrefix);
  entry.annotations[prefix + "name"] = "variant" + digits;
  entry.annotations[prefix + "cpu"] = kCpus[number % std::size(kCpus)];
  entry.annotations[prefix + "gpu"] = kGpus[number % std::size(kGpus)];
  entry.annotations[prefix + "cuda"] = kCudas[number / 4 % std::size(kCudas)];
  entry.annotations[prefix + "driver"] = ">=525.60.13";
  made.declared = match::read_declared(entry);
  if (number % 2 == 0) return made;
  made.found = facts::ImageFacts();
  made.found->architecture = "amd64";
  made.found->glibc = "2.36";
  made.found->cpu.push_back({{3, "instructions"}, 12, "/opt/app/libfast.so", false});
  made.found->cuda_runtimes = {"12.8"};
  facts::GpuCodeSet set;
  for (const char* arch : {"70", "80", "86", "90", "90a"}) {
    set.code.push_back({facts::GpuCode::Kind::sass, arch, {}});
  }
  set.code.push_back({facts::GpuCode::Kind::ptx, "90", "8.7"});
  set.files = 40;
  set.example = "/opt/app/libkernels.so";
  made.found->gpu_code.assign(4, set);
  return made;
}

struct Times {
  std::vector<double> milliseconds;  ///< sorted
  size_t fitting = 0;
};

Times times_of(const std::vector<match::Candidate>& candidates, const node::Profile& node,
               match::Explain explain) {
  Times times;
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<match::Candidate> copy = candidates;
    auto before = std::chrono::steady_clock::now();
    match::Ranking ranking = match::rank(std::move(copy), node, {}, explain);
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - before;
    times.milliseconds.push_back(taken.count());
    times.fitting = ranking.order.size();
  }
  std::sort(times.milliseconds.begin(), times.milliseconds.end());
  return times;
}

int measure(size_t entries) {
  node::Profile profile;
  profile.architecture = "amd64";
  auto node = node::with(std::move(profile), "cpu=zen4 driver=580.65.06 gpu=sm_90 gpu=sm_90");
  if (!node.ok()) {
    std::fprintf(stderr, "bench_match_rank: %s\n", to_line(node.error()).c_str());
    return 1;
  }
  std::vector<match::Candidate> candidates;
  for (size_t i = 0; i < entries; ++i) candidates.push_back(candidate(i));
  Times best = times_of(candidates, *node, match::Explain::best);
  Times all = times_of(candidates, *node, match::Explain::all);
  std::printf(
      "{\"entries\": %zu, \"fitting\": %zu, \"median_ms\": %.3f, \"p90_ms\": %.3f, "
      "\"explained_median_ms\": %.3f}\n",
      entries, best.fitting, best.milliseconds[kRounds / 2], best.milliseconds[kRounds * 9 / 10],
      all.milliseconds[kRounds / 2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  size_t entries = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (entries == 0 || entries > 1'000'000) {
    std::fputs("usage: bench_match_rank ENTRIES\n", stderr);
    return 2;
  }
  return measure(entries);
}
