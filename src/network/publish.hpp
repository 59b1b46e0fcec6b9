// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// Parses one --publish as docker does: [ADDRESS:][PORT[-PORT]]:PORT[-PORT][/tcp|/udp] (an IPv6
/// address in brackets), a port of the container alone, or "published=8080,target=80,protocol=tcp".
/// A range of the host for a single port of the container means any free port of that range.
/// Errors: usage, with docker's messages (an invalid port, ranges of different lengths, a
/// protocol); unsupported (sctp).
Result<Publish> parse_publish(std::string_view text);

/// Refuses ports at IPv6 addresses unless `mode` (as in Request) is pasta: only its networks have
/// IPv6.
/// Errors: unsupported (a port at an IPv6 address of another network).
Result<void> check_versions(const std::vector<Publish>& ports, std::string_view mode);

/// A port or a range of an image's ExposedPorts and of --expose: "80/tcp", "8000-8010".
/// Errors: usage.
struct Exposed {
  uint16_t first = 0;
  uint16_t last = 0;
  std::string protocol;
  bool operator==(const Exposed&) const = default;
};
Result<Exposed> parse_exposed(std::string_view text);

enum class PublishAll { no, yes };
/// The ports to publish: `publish` unchanged, and with `all` every other port of `exposed`, at any
/// free port of the host.
std::vector<Publish> all_ports(std::vector<Publish> publish, const std::vector<Exposed>& exposed,
                               PublishAll all);

}  // namespace berth::network
