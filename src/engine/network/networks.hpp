// SPDX-License-Identifier: Apache-2.0
// The store of networks with names: <root>/networks/<name>.json each (docs/decisions/0177).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

struct NetworkRecord {
  std::string id;  ///< 64 hexadecimal digits
  std::string name;
  std::string driver = "bridge";
  int64_t created_ns = 0;  ///< since 1970
  std::string subnet;      ///< "10.128.0.0/20"
  std::string gateway;
  std::string range;      ///< the part of the subnet from which containers get theirs; empty: all
  bool internal = false;  ///< without a way out
  std::map<std::string, std::string> labels;
};
template <class V>
void fields(V& v, NetworkRecord& r) {
  v.required("id", r.id);
  v.required("name", r.name);
  v.required("driver", r.driver);
  v.required("created_ns", r.created_ns);
  v.optional("subnet", r.subnet);
  v.optional("gateway", r.gateway);
  v.optional("range", r.range);
  v.optional("internal", r.internal);
  v.optional("labels", r.labels);
}

inline constexpr std::string_view kDefaultNetwork = "bridge";  ///< docker's name of it

/// Makes the network, and gives it with its id. Without a subnet a free one is chosen, that no
/// route of the host and no other network overlaps; without a gateway its first address is it.
/// Errors: usage (name, subnet, gateway, range), exists, denied (a name that docker keeps), corrupt
/// (a record without a readable subnet, where a free one has to be chosen), unsupported (another
/// driver, no free subnet), io.
Result<NetworkRecord> make_network(const Context& context, NetworkRecord wish);

/// By its name, or by the beginning of its id. Errors: corrupt, io, usage (several ids).
Result<std::optional<NetworkRecord>> find_network(const Context& context,
                                                  std::string_view reference);
/// Without those that every machine has, and without records that cannot be read, of which it
/// warns. Errors: io.
Result<std::vector<NetworkRecord>> list_networks(const Context& context);

/// bridge, host and none. Pure.
const std::vector<NetworkRecord>& usual_networks();

/// Errors: not_found, denied (bridge, host, none), busy (a container that runs is in it).
Result<NetworkRecord> remove_network(const Context& context, std::string_view reference);

/// What berth-network is told, for a container `id`: one for each network of `request`.
/// Errors: not_found (a network that is gone).
Result<std::vector<network::Attachment>> attachments_of(const Context& context,
                                                        const RunRequest& request,
                                                        const std::string& id);
Result<network::Attachment> attachment_of(const Context& context, const JoinedNetwork& joined,
                                          const std::optional<std::string>& name,
                                          const std::string& id);

/// One --network that is none of the words: NAME, or "name=NAME,alias=ALIAS,ip=ADDRESS,
/// mac-address=ADDRESS". The network has to be there. Errors: not_found, usage, those of
/// find_network().
Result<JoinedNetwork> parse_joined_network(const Context& context, std::string_view text);

/// A MAC address as records have it: "02:42:ac:11:00:09". Errors: usage.
Result<std::string> read_mac(std::string_view text);

/// A name by which others of the network find a container. Errors: usage.
Result<void> check_network_alias(std::string_view alias);

}  // namespace berth::engine
