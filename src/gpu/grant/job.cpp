// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/job.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

struct Scheduler {
  std::string_view name;
  std::vector<std::string_view> evidence;
  /// Variables with the job's GPUs, used when the selection variables are unset.
  std::vector<std::string_view> allocation;
};

const std::vector<Scheduler>& schedulers() {
  static const std::vector<Scheduler> kAll = {
      {"Slurm", {"SLURM_JOB_ID", "SLURM_JOBID"}, {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}},
      {"Flux", {"FLUX_JOB_ID"}, {}},
      {"PBS", {"PBS_JOBID"}, {}},
      {"LSF", {"LSB_JOBID"}, {}},
      {"HTCondor", {"_CONDOR_SLOT", "_CONDOR_JOB_AD"}, {"_CONDOR_AssignedGPUs"}},
  };
  return kAll;
}

std::optional<std::string> first_of(const std::vector<std::string_view>& names,
                                    const Variables& variables) {
  for (std::string_view name : names) {
    if (variables.get(name)) return std::string(name);
  }
  return std::nullopt;
}

Limit limit_of(const std::string& variable, const Variables& caller, std::vector<Vendor> vendors) {
  Limit limit;
  limit.variable = variable;
  limit.value = caller.get(variable).value_or("");
  limit.ids = parse_selection(limit.value);
  limit.vendors = std::move(vendors);
  return limit;
}

// For each vendor the first variable that is set counts. The indices of HIP's variable count the
// GPUs that ROCR_VISIBLE_DEVICES leaves, so both are applied, one after the other;
// GPU_DEVICE_ORDINAL repeats the others.
void add_limits(const Variables& caller, Job& job) {
  auto add = [&](const std::vector<std::string_view>& names, Vendor vendor) {
    auto name = first_of(names, caller);
    if (!name) return false;
    for (Limit& limit : job.limits) {
      if (limit.variable != *name) continue;
      limit.vendors.push_back(vendor);
      return true;
    }
    job.limits.push_back(limit_of(*name, caller, {vendor}));
    return true;
  };
  add({"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}, Vendor::nvidia);
  if (add({"ROCR_VISIBLE_DEVICES"}, Vendor::amd)) {
    if (add({"HIP_VISIBLE_DEVICES"}, Vendor::amd)) job.limits.back().of_the_rest = true;
  } else {
    add({"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}, Vendor::amd);
  }
  add({"ZE_AFFINITY_MASK"}, Vendor::intel);
}

bool can_name(std::string_view id) {
  return parse_u64(id) || id.starts_with("GPU-") || id.starts_with("MIG-");
}

}  // namespace

const std::vector<std::string_view>& selection_variables() {
  static const std::vector<std::string_view> kNames = {
      "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
      "GPU_DEVICE_ORDINAL"};
  return kNames;
}

bool Job::has_gpus() const {
  return std::ranges::any_of(limits, [](const Limit& limit) { return !limit.ids.empty(); });
}

std::vector<std::string> parse_selection(std::string_view value) {
  constexpr std::string_view kCondor = "CUDA";
  constexpr uint64_t kNone = 10000;  // HTCondor's value for a slot without GPUs
  std::vector<std::string> out;
  for (std::string_view id : split(value, ',')) {
    id = trim(id);
    if (id.starts_with(kCondor)) id.remove_prefix(kCondor.size());
    size_t dot = id.find('.');
    if (dot != std::string_view::npos && parse_u64(id.substr(dot + 1))) id = id.substr(0, dot);
    if (!can_name(id) || parse_u64(id) == kNone) break;
    std::string name(id);
    if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
  }
  return out;
}

std::optional<Job> find_job(const Variables& caller) {
  for (const Scheduler& scheduler : schedulers()) {
    auto evidence = first_of(scheduler.evidence, caller);
    if (!evidence) continue;
    Job job;
    job.scheduler = scheduler.name;
    job.evidence = *evidence;
    for (std::string_view name : selection_variables()) {
      if (caller.get(name)) job.variables.emplace_back(name);
    }
    add_limits(caller, job);
    auto allocation = first_of(scheduler.allocation, caller);
    if (job.limits.empty() && allocation) {
      job.limits.push_back(limit_of(*allocation, caller, {}));
      job.limits.back().of_the_machine = scheduler.name == "Slurm";
    }
    return job;
  }
  return std::nullopt;
}

}  // namespace berth::gpu
