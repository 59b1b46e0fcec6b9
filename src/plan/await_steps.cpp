// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "plan/maker.hpp"

namespace berth::plan {
namespace {

enum class Wait { none, cgroup, confinement };

template <class T>
constexpr Wait wait_before(const T&) {
  return Wait::none;
}
// Its root is the cgroup that the process is in at this moment.
constexpr Wait wait_before(const EnterCgroupNamespace&) {
  return Wait::cgroup;
}
constexpr Wait wait_before(const MoveInterfaces&) {
  return Wait::cgroup;
}
// What the cgroup bounds is asked for inside it.
constexpr Wait wait_before(const SetScheduler&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const SetIoPriority&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const SetMemoryPolicy&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const SetAffinity&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const ResetAffinity&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const PreferPlace&) {
  return Wait::confinement;
}
// No program of the container's or of a hook runs before the limits and the device rules hold.
constexpr Wait wait_before(const RunHooks&) {
  return Wait::confinement;
}
constexpr Wait wait_before(const FindProgram&) {
  return Wait::confinement;
}
// berth-runtime compiles the filter while the container's process mounts.
constexpr Wait wait_before(const LoadSeccomp&) {
  return Wait::confinement;
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
    Wait wait = std::visit([](const auto& s) { return wait_before(s); }, step);
    if (std::holds_alternative<MountCgroups>(step)) wait = views;
    if (wait > Wait::none && passed == Wait::none) steps.emplace_back(AwaitCgroup{});
    if (wait == Wait::confinement && passed < wait) steps.emplace_back(AwaitConfinement{});
    passed = std::max(passed, wait);
    steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
  return plan;
}

}  // namespace berth::plan
