// SPDX-License-Identifier: Apache-2.0
// berth-node: offers this node's GPUs to the kubelet.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "kube/agent/plugin_server.hpp"
#include "sys/fd/fd.hpp"

namespace berth::kube {

/// All paths are absolute.
struct AgentOptions {
  std::string config;  ///< node.toml; empty: /etc/berth/node.toml if it exists
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string config_dir = "/etc/berth";  ///< of policy.json
  std::string state_dir;                  ///< the inventory; empty: default_state_directory()
  std::string driver_root;                ///< empty: as the policy says, or "/"
  std::string cdi_dir = "/var/run/cdi";
  HandOver how;
};

/// Works until `stop` can be read. The kubelet may come, go and come back meanwhile.
/// Errors: corrupt (node.toml), denied (the ledger), usage.
Result<void> run_agent(AgentOptions options, const sys::Fd& stop, Log& log);

}  // namespace berth::kube
