// SPDX-License-Identifier: Apache-2.0
// The requests that the hub answers; it refuses all other paths. Pure.
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
  std::string last;    ///< the list begins after this tag; "": at the start
  uint32_t count = 0;  ///< the maximal number of tags; 0: all
};

using Route = std::variant<PingRoute, ManifestRoute, BlobRoute, TagsRoute, Reply>;

/// The Reply is for an invalid route: 405 (another method), 404 (another path), 400 (an invalid
/// name, tag or digest).  Source: distribution-spec 1.1 "Endpoints".
Route route_of(std::string_view method, std::string_view target);

/// The upstream repository of a name at the hub.
struct Place {
  size_t upstream = 0;  ///< index into the list of upstreams
  std::string repository;
};
/// The upstream with the longest prefix of `name`; nothing if none matches.
std::optional<Place> place_of(const std::vector<Upstream>& upstreams, std::string_view name);

/// Whether the tag has the form "sha256-HEX", with which clients list the referrers of a digest at
/// a registry without the referrers API. The index of such a tag lists artifacts, not variants.
/// Source: distribution-spec 1.1 "Referrers Tag Schema".
bool is_referrers_tag(std::string_view tag);

/// Whether a client with these Accept headers accepts `media_type`. A client without Accept headers
/// accepts everything.  Source: RFC 9110 section 12.5.1
bool accepts(const std::vector<std::string>& accept, std::string_view media_type);

/// "bytes=100-" and "bytes=0-99" are the only ranges that are passed on. Empty for others: the
/// client then gets the whole blob.  Source: RFC 9110 section 14.2
std::string plain_range(std::string_view value);

}  // namespace berth::hub
