// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The store and the machine for `info`.
struct SystemInfo {
  uint64_t images = 0;
  uint64_t running = 0, paused = 0, stopped = 0;  ///< containers
  std::string kernel;                             ///< "6.1.0-18-amd64"
  std::string system;                             ///< "Debian GNU/Linux 12 (bookworm)"
  std::string architecture;                       ///< "x86_64"
  std::string host;                               ///< the host name
  uint64_t processors = 0;                        ///< available to this process
  uint64_t memory_bytes = 0;
  int cgroup_version = 1;
  std::string rootfs_driver;          ///< for new containers: "overlay"
  std::string default_network;        ///< "bridge", "host"
  std::vector<std::string> security;  ///< in docker's form: "name=seccomp,profile=default"
};

/// Leaves members empty that cannot be read.  Errors: io (the store); those of rootfs_choice() and
/// default_network().
Result<SystemInfo> system_info(const Context& context);

}  // namespace berth::engine
