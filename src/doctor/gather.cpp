// SPDX-License-Identifier: Apache-2.0
#include "doctor/gather.hpp"

#include "base/text.hpp"
#include "doctor/gather_parts.hpp"
#include "gpu/inventory/driver_root.hpp"

namespace berth::doctor {

Facts gather(const Inputs& inputs) {
  Facts facts;
  facts.host = gather_host(inputs);
  // A synthetic tree stands for a machine, including its init.
  if (auto root = gpu::DriverRoot::open(inputs.driver_root); root.ok()) {
    facts.host.systemd = root->stat_machine("/run/systemd/system").has_value();
    auto enforcing = root->read_machine("/sys/fs/selinux/enforce");
    facts.host.selinux_enforcing = enforcing.ok() && *enforcing && trim(**enforcing) == "1";
  }
  facts.gpu = gather_gpu(inputs);
  if (inputs.scope == Scope::everything) try_out(inputs, facts.host);
  return facts;
}

}  // namespace berth::doctor
