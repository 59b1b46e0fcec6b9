// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/attributes.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <sched.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/scheduling.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

// Checks that the file is in procfs: runtimes once wrote labels into a file that the container had
// mounted over it (CVE-2019-16884).
Result<sys::Fd> open_of_procfs(const std::string& path) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  if (TRY(sys::file_system_type(file, path)) != PROC_SUPER_MAGIC) {
    return make_error(Kind::denied, quote(path) + " is not a file of procfs");
  }
  return file;
}

Result<void> write_label(const std::string& path, const std::string& text) {
  sys::Fd file = TRY(open_of_procfs(path));
  return sys::write_all(file, text, path);
}

Result<void> set_apparmor(const std::string& profile) {
  std::string text = "exec " + profile;
  auto written = write_label("/proc/self/attr/apparmor/exec", text);
  // COMPAT(5.8): delete when that is our baseline. Before 5.8 all security modules share this file.
  if (!written.ok() && written.error().kind == Kind::not_found) {
    written = write_label("/proc/self/attr/exec", text);
  }
  // The file exists, so ENOENT means that the profile does not.
  if (!written.ok() && written.error().kind == Kind::not_found) {
    return make_error(Kind::not_found, "AppArmor profile " + quote(profile) + " is not loaded");
  }
  return written;
}

}  // namespace

Result<void> enter_time_namespace(Inside& inside, const plan::EnterTimeNamespace& step) {
  TRY(sys::unshare(CLONE_NEWTIME, "time namespace"));
  std::string text;
  for (const auto& [clock, offset] : step.offsets) {
    text +=
        clock + " " + std::to_string(offset.secs) + " " + std::to_string(offset.nanosecs) + "\n";
  }
  if (!text.empty()) {
    std::string path = "/proc/self/timens_offsets";
    sys::Fd file = std::move(inside.time_offsets);
    if (!file) file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
    TRY_CTX(sys::write_all(file, text, path), "cannot shift the clocks");
  }
  inside.time_offsets.reset();
  // So far the new namespace applies only to children, and its clocks can still be set.
  std::string own = "/proc/self/ns/time_for_children";
  sys::Fd space = TRY(sys::open_at(sys::cwd(), own, O_RDONLY));
  return sys::setns(space, CLONE_NEWTIME, own);
}

Result<void> set_labels(const plan::SetLabels& step) {
  if (!step.apparmor.empty()) {
    TRY_CTX(set_apparmor(step.apparmor), "cannot apply process.apparmorProfile");
  }
  if (!step.selinux.empty()) {
    TRY_CTX(write_label("/proc/self/attr/exec", step.selinux),
            "cannot apply process.selinuxLabel " + quote(step.selinux));
  }
  return {};
}

constexpr uint32_t kDeadline = 6;  // SCHED_DEADLINE of linux/sched.h, which sched.h may lack

Result<void> set_scheduler(const plan::SetScheduler& step) {
  sys::Scheduling wish;
  wish.policy = step.policy;
  wish.flags = step.flags;
  wish.nice = step.nice;
  wish.priority = step.priority;
  wish.runtime = step.runtime;
  wish.deadline = step.deadline;
  wish.period = step.period;
  auto set = sys::set_scheduling(wish);
  if (set.ok()) return set;
  Error error = std::move(set).error();
  if (step.policy == kDeadline && error.kind == Kind::denied) {
    error.hint = "no linux.resources.cpu.cpus: this policy needs all processors";
  }
  return std::move(error).with_context("cannot apply process.scheduler");
}

Result<void> set_io_priority(const plan::SetIoPriority& step) {
  TRY_CTX(sys::set_io_priority(step.io_class, step.level), "cannot apply process.ioPriority");
  return {};
}

Result<void> set_memory_policy(const plan::SetMemoryPolicy& step) {
  TRY_CTX(sys::set_memory_policy(step.mode, step.nodes), "cannot apply linux.memoryPolicy");
  return {};
}

Result<void> prefer_place(const plan::PreferPlace& step) {
  if (!step.processors.empty()) ignore(sys::set_affinity(step.processors));
  auto policy = sys::memory_policy();
  if (step.memory_nodes.empty() || !policy.ok() || *policy != MPOL_DEFAULT) return {};
  // MPOL_PREFERRED_MANY needs Linux 5.15. On older kernels the default, local allocation, is better
  // than one preferred node, which would be far away for processes on other nodes.
  int mode = step.memory_nodes.size() == 1 ? MPOL_PREFERRED : MPOL_PREFERRED_MANY;
  ignore(sys::set_memory_policy(mode, step.memory_nodes));
  return {};
}

Result<void> reset_affinity(const plan::ResetAffinity&) {
  ignore(sys::reset_affinity());
  return {};
}

Result<void> set_personality(const plan::SetPersonality& step) {
  TRY_CTX(sys::set_personality(step.persona), "cannot apply linux.personality");
  return {};
}

}  // namespace berth::runtime
