// SPDX-License-Identifier: Apache-2.0
// The store of named networks. Each network is a file <root>/networks/<name>.json
// (docs/decisions/0177).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

struct NetworkRecord {
  std::string id;  ///< 64 hexadecimal digits
  std::string name;
  std::string driver = "bridge";
  int64_t created_ns = 0;  ///< since 1970
  std::string subnet;      ///< "10.128.0.0/20"
  std::string gateway;
  std::string range;      ///< the part of the subnet for containers' addresses; empty: all
  bool internal = false;  ///< without outside access
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

inline constexpr std::string_view kDefaultNetwork = "bridge";  ///< the name in docker

/// Makes the network, and returns its record with the id. If `wish` has no subnet, chooses a free
/// one, which overlaps no route of the host and no other network. The default gateway is the first
/// address.
/// Errors: usage (name, subnet, gateway, range), exists, denied (a name that docker reserves),
/// corrupt (a free subnet must be chosen, but the subnet of a record is unreadable), unsupported
/// (another driver, no free subnet), io.
Result<NetworkRecord> make_network(const Context& context, NetworkRecord wish);

/// Finds a network by its name or an id prefix. Errors: corrupt, io, usage (several ids match).
Result<std::optional<NetworkRecord>> find_network(const Context& context,
                                                  std::string_view reference);
/// All networks but the built-in ones. Skips records that cannot be read, with a warning. Errors:
/// io.
Result<std::vector<NetworkRecord>> list_networks(const Context& context);

/// Errors: not_found, denied (bridge, host, none), busy (a running container uses the network).
Result<NetworkRecord> remove_network(const Context& context, std::string_view reference);

/// Letters, digits, '.', '_' and '-'.
bool is_name_character(char c);

/// Whether the name is a keyword of --network: a network with this name could not be selected.
bool is_network_keyword(std::string_view name);

/// The error for a name that no network has.
Error no_network(std::string_view reference);

/// The networks that match `filters`, sorted by name, including bridge, host and none. Filters:
/// dangling, driver, id, label, name, scope, type.
/// Errors: usage (a filter), io.
Result<std::vector<NetworkRecord>> query_networks(const Context& context, const Filters& filters);

/// One JSON object with the members of `docker network inspect`.
/// Errors: not_found ("No such network: X").
Result<std::string> inspect_network(const Context& context, const std::string& reference);

}  // namespace berth::engine
