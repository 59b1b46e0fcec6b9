// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.hpp"

namespace berth::doctor {

/// The paths to examine; absolute.
struct Inputs {
  std::string root;
  std::string state;
  std::string libexec;
  std::string driver_root = "/";
  std::string config_dir = "/etc/berth";
  std::vector<std::string> cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  std::optional<Error> no_home;     ///< why there is no root
  std::string network;              ///< the default of containers; empty: unknown
  std::optional<Error> no_network;  ///< why they cannot have it
  std::string job;                  ///< "Slurm job 42"
  Scope scope = Scope::everything;
};

}  // namespace berth::doctor
