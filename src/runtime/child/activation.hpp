// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime and the container's first process. Capabilities: none needed. Hostile: the
// environment, which comes from the caller.
#pragma once

#include <string>
#include <vector>

namespace berth::runtime {

/// The sockets that a service manager opens for a service and passes as descriptors 3 and
/// following. We pass them to the container's program. Source: sd_listen_fds(3).
struct Activation {
  int count = 0;
  std::string names{};  ///< LISTEN_FDNAMES
};

/// Reads the LISTEN_* variables of `environment`, which is our own. If LISTEN_PID names another
/// process, the sockets are not for us; without LISTEN_PID they are for us, as under crun.
Activation read_activation(const std::vector<std::string>& environment);

/// Sets the LISTEN_* variables in `env` for the program that this process becomes; removes the old
/// ones.
void add_activation(const Activation& activation, std::vector<std::string>& env);

}  // namespace berth::runtime
