// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "plan/maker.hpp"

namespace berth::plan {
namespace {

enum class Wait { none, cgroup, confinement };

template <class... Steps>
bool is_one_of(const Step& step) {
  return (std::holds_alternative<Steps>(step) || ...);
}

Wait wait_before(const Step& step) {
  // The process's current cgroup becomes the root of the cgroup namespace.
  if (is_one_of<EnterCgroupNamespace, MoveInterfaces>(step)) return Wait::cgroup;
  // The cgroup limits these settings, so set them inside the cgroup.
  if (is_one_of<SetScheduler, SetIoPriority, SetMemoryPolicy>(step)) return Wait::confinement;
  if (is_one_of<SetAffinity, ResetAffinity, PreferPlace>(step)) return Wait::confinement;
  // No program of the container or of a hook may run before the limits and the device rules are
  // set.
  if (is_one_of<RunHooks, FindProgram>(step)) return Wait::confinement;
  // berth-runtime compiles the filter while the container's process makes mounts.
  return is_one_of<LoadSeccomp>(step) ? Wait::confinement : Wait::none;
}

/// The wait before cgroups are mounted: systemd makes the cgroup for the running process, so the
/// path is known only afterwards.
Wait wait_before_views(const Plan& plan) {
  const auto* cgroup = find<MakeCgroup>(plan);
  return cgroup != nullptr && cgroup->scope ? Wait::cgroup : Wait::none;
}

}  // namespace

Plan with_await_steps(Plan plan) {
  const Wait views = wait_before_views(plan);
  Wait passed = Wait::none;
  std::vector<Step> steps;
  steps.reserve(plan.steps.size() + 2);
  for (Step& step : plan.steps) {
    Wait wait = std::holds_alternative<MountCgroups>(step) ? views : wait_before(step);
    if (wait > Wait::none && passed == Wait::none) steps.emplace_back(AwaitCgroup{});
    if (wait == Wait::confinement && passed < wait) steps.emplace_back(AwaitConfinement{});
    passed = std::max(passed, wait);
    steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
  return plan;
}

}  // namespace berth::plan
