// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/inspect/container_query.hpp"
#include "engine/request/request.hpp"
#include "json/value.hpp"
#include "oci/image_spec.hpp"

namespace berth::engine {

/// The facts about a container. Times are nanoseconds since 1970.
struct ContainerFacts {
  std::string id;
  std::string name;
  std::string image;                 ///< as requested
  std::string image_id;              ///< "sha256:…"
  std::vector<std::string> command;  ///< entrypoint and arguments
  std::string state;                 ///< "running", …
  int64_t created = 0;
  std::optional<int64_t> started;
  std::optional<int64_t> finished;
  std::optional<int> exit_code;
  std::optional<int64_t> pid;
  bool oom_killed = false;
  std::string error;
  int restarts = 0;
  bool remove = false;
  std::string files;                             ///< absolute directory of bundle and request
  std::string directory;                         ///< absolute directory of layer and log
  std::string root;                              ///< of the store, which has the volumes
  std::optional<json::Value> health;             ///< from read_health(); none: no health check
  RunRequest request;                            ///< empty if none was saved
  std::optional<oci::ImageConfig> image_config;  ///< none: removed, or no image was used
  std::vector<std::string> masked_paths;
  std::vector<std::string> readonly_paths;
  std::vector<std::string> layers;  ///< directories, highest first
  std::vector<PortSummary> ports;
  std::optional<network::Lease> lease;  ///< none: no private network, or not running
  std::optional<ContainerSize> size;
};

}  // namespace berth::engine
