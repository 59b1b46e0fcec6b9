// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/decide/mpi_launch.hpp"
#include "engine/network/network.hpp"
#include "engine/request/request.hpp"

namespace berth::cli {

/// The targets of flags: members of the request where one value is enough, and values that depend
/// on others or on the caller's directory.
struct RequestOptions {
  engine::RunRequest request;
  engine::RunCall call;
  std::vector<std::string> environment;
  std::vector<std::string> env_files;
  std::optional<std::string> environment_file;  ///< --environment
  std::vector<std::string> label_files;
  std::vector<std::string> labels;
  std::vector<std::string> devices;
  std::vector<std::string> volumes;
  std::vector<std::string> mounts;
  std::vector<std::string> tmpfs;
  engine::NetworkFlags network;
  engine::MpiFlags mpi;
  std::string pull = "missing";
  std::string gpu_driver;
  bool immutable = false;
  bool rootfs = false;
  std::string runtime;
  std::string cgroups;                         ///< podman's; no effect here
  std::vector<std::string> hooks_directories;  ///< likewise
  bool no_trust = true;                        ///< --disable-content-trust
};

}  // namespace berth::cli
