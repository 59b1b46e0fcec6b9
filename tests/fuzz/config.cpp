// SPDX-License-Identifier: Apache-2.0
// config.json and all that is decided from it before anything is done: no crash, and what was
// accepted can be written, read again and described.
#include "oci/config.hpp"

#include <cstdint>

#include "base/assert.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/plan.hpp"
#include "runtime/cgroup/device_filter.hpp"
#include "runtime/cgroup/limits.hpp"
#include "runtime/cgroup/scope.hpp"
#include "runtime/seccomp/seccomp.hpp"

namespace {

using namespace berth;

void decide(const oci::Spec& spec, const plan::HostFacts& facts, bool await_start) {
  plan::Container container{"c1", "/bundle", await_start};
  auto made = plan::make(spec, container, facts);
  if (made.ok()) {
    for (const auto& step : made->steps) BERTH_ASSERT(!plan::describe(step).text.empty());
  }
  auto joined = plan::make_exec(spec, {}, facts);
  if (joined.ok()) {
    for (const auto& step : joined->steps) BERTH_ASSERT(!plan::describe(step).text.empty());
  }
}

void limit(const oci::Resources& resources) {
  (void)runtime::compile_device_filter(resources.devices).ok();
  (void)runtime::scope_devices(resources.devices).ok();
  if (!runtime::check_resources(resources).ok()) return;
  (void)runtime::v1_writes(resources);
  (void)runtime::v2_writes(resources).ok();
  (void)runtime::scope_limits(resources).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto spec = oci::parse_spec(text);
  (void)oci::parse_process(text, "process.json").ok();
  (void)oci::parse_resources(text, "resources.json").ok();
  if (!spec.ok()) return 0;
  std::string written = oci::write_spec(*spec);
  auto again = oci::parse_spec(written);
  BERTH_ASSERT(again.ok());
  BERTH_ASSERT(oci::write_spec(*again) == written);

  plan::HostFacts facts;
  decide(*spec, facts, false);
  facts.user_namespace = true;
  facts.tty_group_mapped = false;
  facts.apparmor = facts.selinux = facts.resctrl = true;
  decide(*spec, facts, true);
  if (spec->linux_.seccomp) {
    auto program = runtime::compile_seccomp(*spec->linux_.seccomp);
    BERTH_ASSERT(!program.ok() || program->size() <= runtime::kMaxSeccompInstructions);
  }
  if (spec->linux_.resources) limit(*spec->linux_.resources);
  return 0;
}
