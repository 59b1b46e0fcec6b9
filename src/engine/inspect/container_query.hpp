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

/// What `ps` asks: containers with what was asked of them, filtered.
namespace berth::engine {

/// A port of a container; `host_port` is 0 where it is not published.
struct PortSummary {
  std::string host_ip;
  uint16_t host_port = 0;
  uint16_t container_port = 0;
  std::string protocol = "tcp";
};

struct MountSummary {
  std::string type;    ///< "bind" or "volume"
  std::string name;    ///< of a volume
  std::string source;  ///< of a bind
  std::string destination;
};

/// What a container was asked to be, as far as lists show it.
struct ContainerDetails {
  std::map<std::string, std::string> labels;  ///< the image's and its own
  std::vector<MountSummary> mounts;
  std::vector<std::string> networks;  ///< "none", "app"; those of another container are its own
  std::vector<PortSummary> ports;
};

struct ContainerSize {
  uint64_t written = 0;  ///< bytes of its own layer, or of its copy of the image
  uint64_t whole = 0;    ///< and of the image
};
/// `directory`: of the container.
ContainerSize container_size(const std::string& directory, uint64_t image_bytes);

struct ListedContainer {
  ContainerSummary summary;
  ContainerDetails details;           ///< empty unless asked for
  std::optional<ContainerSize> size;  ///< none unless asked for
  std::string health;                 ///< "starting", "healthy", "unhealthy"; empty: no check
};

struct ContainerQuery {
  bool all = false;                ///< also those that do not run
  std::optional<uint64_t> newest;  ///< so many at most, whether they run or not
  Filters filters;
  bool details = false;
  bool ports = false;  ///< the details of those that run, which alone have ports
  bool sizes = false;
};

/// Without what is published.
ContainerDetails container_details(const Context& context, const ContainerSummary& summary);

/// What `lease` says is published (null: nothing is), and what is exposed besides. Pure.
std::vector<PortSummary> ports_of(const RunRequest& request, const oci::ContainerDefaults& image,
                                  const network::Lease* lease);

/// The keys that query_containers() knows.
const std::vector<std::string_view>& container_filter_keys();

/// Newest first.
/// Errors: usage (a filter), not_found (the container of "before" or "since"), io.
Result<std::vector<ListedContainer>> query_containers(const Context& context,
                                                      const ContainerQuery& query);

}  // namespace berth::engine
