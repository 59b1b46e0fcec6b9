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
  // Its root is the cgroup that the process is in at this moment.
  if (is_one_of<EnterCgroupNamespace, MoveInterfaces>(step)) return Wait::cgroup;
  // What the cgroup bounds is asked for inside it.
  if (is_one_of<SetScheduler, SetIoPriority, SetMemoryPolicy>(step)) return Wait::confinement;
  if (is_one_of<SetAffinity, ResetAffinity, PreferPlace>(step)) return Wait::confinement;
  // No program of the container's or of a hook runs before the limits and the device rules hold.
  if (is_one_of<RunHooks, FindProgram>(step)) return Wait::confinement;
  // berth-runtime compiles the filter while the container's process mounts.
  return is_one_of<LoadSeccomp>(step) ? Wait::confinement : Wait::none;
}

/// systemd makes the cgroup around the container's process, so that is where it can be found.
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
