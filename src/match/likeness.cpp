// SPDX-License-Identifier: Apache-2.0
#include "match/likeness.hpp"

#include <algorithm>

#include "match/cuda_rules.hpp"
#include "node/archspec.hpp"
#include "scan/driver_files.hpp"

namespace berth::match {
namespace {

using node::NodeGpu;

/// Whether the order of two nodes in a property is allowed; `order` is negative if the left one has
/// less.
using Allows = bool (*)(int order);
bool is_at_least(int order) {
  return order >= 0;
}
bool is_at_most(int order) {
  return order <= 0;
}

bool is_alike(const NodeGpu& gpu, const RunGpu& theirs, Allows allows) {
  if (gpu.vendor != theirs.vendor) return false;
  if (gpu.vendor == "amd" && !gpu.architecture.empty() && !theirs.architecture.empty()) {
    return gpu.architecture == theirs.architecture;
  }
  if (gpu.compute_capability.empty() || theirs.compute_capability.empty()) {
    return !gpu.model.empty() && gpu.model == theirs.model;
  }
  const std::string &here = gpu.compute_capability, &there = theirs.compute_capability;
  bool related = runs_cubins_of(here, there) || runs_cubins_of(there, here);
  return related && allows(scan::compare_versions(here, there));
}

bool is_driver_alike(const node::Profile& node, const RunRecord& record, UserLand user_land,
                     Allows allows) {
  auto has = [&](std::string_view vendor) {
    return std::ranges::any_of(node.gpus, [&](const NodeGpu& gpu) { return gpu.vendor == vendor; });
  };
  auto compare = [&](std::string_view kind, const std::string& version) -> std::optional<int> {
    if (!record.driver || record.driver->kind != kind || version.empty()) return std::nullopt;
    return scan::compare_versions(version, record.driver->version);
  };
  if (has("nvidia")) {
    auto order = compare("nvidia", node.driver.module_version);
    if (!order || (user_land == UserLand::image ? *order != 0 : !allows(*order))) return false;
  }
  // The image contains ROCm. The host's version is a hint, and compared only if the record has one.
  bool rocm = record.driver && record.driver->kind == "rocm";
  if (has("amd") && rocm) {
    auto order = compare("rocm", node.rocm);
    if (!order || !allows(*order)) return false;
  }
  return true;
}

bool are_gpus_alike(const node::Profile& node, const RunRecord& record, UserLand user_land,
                    Allows allows) {
  if (node.gpus.empty() != record.gpus.empty()) return false;
  if (node.gpus.empty()) return true;
  if (node.synthetic != record.synthetic) return false;
  bool all = std::ranges::all_of(node.gpus, [&](const NodeGpu& gpu) {
    return std::ranges::any_of(record.gpus,
                               [&](const RunGpu& theirs) { return is_alike(gpu, theirs, allows); });
  });
  return all && record.user_land == user_land && is_driver_alike(node, record, user_land, allows);
}

/// Nothing if either is unknown.
std::optional<int> compare_kernels(const node::Profile& node, const RunRecord& record) {
  std::string_view release = plain_release(node.kernel.release);
  if (release.empty() || record.kernel.empty()) return std::nullopt;
  return scan::compare_versions(release, record.kernel);
}

}  // namespace

bool reaches(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike) {
  return node.architecture == record.architecture && node.cpu.level >= record.cpu.level &&
         node::runs(node.cpu, record.cpu.microarchitecture) &&
         (!alike.gpus || are_gpus_alike(node, record, user_land, is_at_least)) &&
         (!alike.kernel || compare_kernels(node, record).value_or(-1) >= 0);
}

bool is_within(const node::Profile& node, const RunRecord& record, UserLand user_land,
               Alike alike) {
  if (node.architecture != record.architecture || node.cpu.level > record.cpu.level) return false;
  const std::string& theirs = record.cpu.microarchitecture;
  auto ancestors = node::ancestors_of(theirs);
  bool within = node.cpu.microarchitecture == theirs ||
                std::ranges::find(ancestors, node.cpu.microarchitecture) != ancestors.end();
  return within && (!alike.gpus || are_gpus_alike(node, record, user_land, is_at_most)) &&
         (!alike.kernel || compare_kernels(node, record).value_or(0) <= 0);
}

}  // namespace berth::match
