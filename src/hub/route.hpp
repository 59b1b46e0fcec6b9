// SPDX-License-Identifier: Apache-2.0
// Which object a request is for. Pure; all else than what is listed here is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "hub/config/config.hpp"
#include "hub/reply.hpp"

namespace berth::hub {

struct PingRoute {};  ///< /v2/
struct ManifestRoute {
  std::string name;
  std::string reference;  ///< tag or digest
  bool by_digest = false;
};
struct BlobRoute {
  std::string name;
  Digest digest;
};
struct TagsRoute {
  std::string name;
  std::string last;    ///< the tag behind which the list goes on, or ""
  uint32_t count = 0;  ///< the most that are wanted; 0: all
};

using Route = std::variant<PingRoute, ManifestRoute, BlobRoute, TagsRoute, Reply>;

/// The Reply is that of what is no route: 405 (another method), 404 (another path), 400 (a name,
/// tag or digest that is none).  Source: distribution-spec 1.1 "Endpoints".
Route route_of(std::string_view method, std::string_view target);

/// Where a name of the hub's is.
struct Place {
  size_t upstream = 0;  ///< index into the list
  std::string repository;
};
/// The upstream with the longest prefix of `name` has it, or none has.
std::optional<Place> place_of(const std::vector<Upstream>& upstreams, std::string_view name);

/// Whether a tag is the one under which clients file what refers to a digest, where a registry does
/// not: "sha256-HEX". Its index lists artifacts and no variants.
/// Source: distribution-spec 1.1 "Referrers Tag Schema".
bool is_referrers_tag(std::string_view tag);

/// Whether a client that sent these Accept headers takes `media_type`. One that sent none takes
/// everything.  Source: RFC 9110 section 12.5.1
bool accepts(const std::vector<std::string>& accept, std::string_view media_type);

/// "bytes=100-", "bytes=0-99": all that is passed on of a Range header; empty for others, which
/// means the whole.  Source: RFC 9110 section 14.2
std::string plain_range(std::string_view value);

}  // namespace berth::hub
