// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/facts.hpp"
#include "doctor/finding.hpp"

namespace berth::doctor {

/// Where to look; absolute paths.
struct Inputs {
  std::string root;
  std::string state;
  std::string libexec;
  std::string driver_root = "/";
  std::string config_dir = "/etc/berth";
  std::vector<std::string> cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  std::optional<Error> no_home;     ///< why there is no root
  std::string network;              ///< the default of containers; empty: not known
  std::optional<Error> no_network;  ///< why they cannot have it
  std::string job;                  ///< "Slurm job 42"
  Scope scope = Scope::everything;
};

/// Looks at the machine. What cannot be read is a fact, never an error. With Scope::everything an
/// ordinary user's process is in a user namespace of its own afterwards: making one and mounting an
/// overlay in it are tried out last. Leaves nothing behind.
Facts gather(const Inputs& inputs);

}  // namespace berth::doctor
