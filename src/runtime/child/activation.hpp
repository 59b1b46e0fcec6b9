// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime and the container's first process. Capabilities: none needed. Hostile: the
// environment is the caller's.
#pragma once

#include <string>
#include <vector>

namespace berth::runtime {

/// The sockets that a service manager opens for a service and passes from descriptor 3 on. The
/// container's program gets them. Source: sd_listen_fds(3).
struct Activation {
  int count = 0;
  std::string names{};  ///< LISTEN_FDNAMES
};

/// What `environment`, our own, says. LISTEN_PID of another process says that they are not for us;
/// none at all is taken as crun takes it: they are.
Activation read_activation(const std::vector<std::string>& environment);

/// Tells a program that this process becomes of them; what `env` says of others goes.
void add_activation(const Activation& activation, std::vector<std::string>& env);

}  // namespace berth::runtime
