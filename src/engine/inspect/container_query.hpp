// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/filter.hpp"
#include "engine/request/request.hpp"
#include "oci/image_spec.hpp"

/// The query behind `ps`: filtered containers with their requests.
namespace berth::engine {

/// A port of a container; `host_port` is 0 if not published.
struct PortSummary {
  std::string host_ip;
  uint16_t host_port = 0;
  uint16_t container_port = 0;
  std::string protocol = "tcp";
};

struct MountSummary {
  std::string type;    ///< "bind", "volume" or "image"
  std::string name;    ///< for a volume
  std::string source;  ///< for a bind or an image
  std::string destination;
};

/// The part of a container's request that lists show.
struct ContainerDetails {
  std::map<std::string, std::string> labels;  ///< those of the image and of the container
  std::vector<MountSummary> mounts;
  std::vector<std::string> networks;  ///< "none", "app"; empty: another container's network
  std::vector<PortSummary> ports;
};

struct ContainerSize {
  uint64_t written = 0;  ///< bytes of the container's layer, or of its copy of the image
  uint64_t whole = 0;    ///< bytes including the image
};
/// `directory`: that of the container.
ContainerSize container_size(const std::string& directory, uint64_t image_bytes);

struct ListedContainer {
  ContainerSummary summary;
  ContainerDetails details;           ///< empty unless requested
  std::optional<ContainerSize> size;  ///< none unless requested
  std::string health;                 ///< "starting", "healthy", "unhealthy"; empty: no check
};

struct ContainerQuery {
  bool all = false;                ///< also stopped containers
  std::optional<uint64_t> newest;  ///< at most this number, running or not
  Filters filters;
  bool details = false;
  bool ports = false;  ///< `details`, but only of running containers: others have no ports
  bool sizes = false;
};

/// Without published ports.
ContainerDetails container_details(const Context& context, const ContainerSummary& summary);

/// The published ports in `lease` (null: none), and the exposed ports that are not published. Pure.
std::vector<PortSummary> ports_of(const RunRequest& request, const oci::ContainerDefaults& image,
                                  const network::Lease* lease);

/// Newest first.
/// Errors: usage (a filter), not_found (the container of "before" or "since"), io.
Result<std::vector<ListedContainer>> query_containers(const Context& context,
                                                      const ContainerQuery& query);

}  // namespace berth::engine
