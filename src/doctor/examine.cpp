// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "doctor/checks.hpp"

namespace berth::doctor {

std::string_view status_name(Status status) {
  static constexpr std::string_view kNames[] = {"ok", "warning", "problem", "not applicable"};
  return kNames[static_cast<size_t>(status)];
}

std::string counted(size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

bool has_nvidia(const Facts& facts) {
  const GpuFacts& gpu = facts.gpu;
  bool on_bus =
      std::ranges::any_of(gpu.pci, [](const PciGpu& found) { return found.vendor == "10de"; });
  const gpu::Driver& driver = gpu.inventory.driver;
  return on_bus || gpu.listed || !driver.module_version.empty() || !driver.library_version.empty();
}

std::span<const Check> all_checks() {
  static const std::vector<Check> kAll = [] {
    std::vector<Check> all;
    for (auto part :
         {host_checks(), storage_checks(), driver_checks(), node_checks(), site_checks()}) {
      std::ranges::copy(part, std::back_inserter(all));
    }
    return all;
  }();
  return kAll;
}

std::vector<Answer> examine(const Facts& facts, Scope scope) {
  std::vector<Answer> answers;
  for (const Check& check : all_checks()) {
    if (scope == Scope::gpu && !check.id.starts_with("gpu.")) continue;
    answers.push_back({check.id, check.judge(facts)});
  }
  return answers;
}

}  // namespace berth::doctor
