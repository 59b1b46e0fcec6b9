// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "network/ipv4.hpp"
#include "network/request.hpp"

namespace berth::network {

/// Names of one instance of Berth on a machine: of the default state directory, or of another one,
/// which has a bridge and rules of its own.
struct Names {
  std::string bridge;       ///< also of the tables: "berth0"; kBridges stands for all of them
  std::string port_prefix;  ///< of the host's ends of the containers' interfaces: "bv0."
};
/// Letters, digits and dots alone, whatever `directory`, that of the leases, is called: they go
/// into rules. At most 15 bytes, with five digits after the prefix.
Names names_for(const std::string& directory);

inline constexpr const char* kBridges = "berth*";

/// The same for the network with the name whose id is `id`, 64 hexadecimal digits: ids of networks
/// of one machine differ in their first kNetworkDigits.
inline constexpr size_t kNetworkDigits = 6;
Names names_for_network(const std::string& id);

/// What the rules are made of. Every text in it was made or parsed by us.
/// The interface by which the holder's network namespace leads out.
inline constexpr const char* kOutsideInterface = "tap0";
/// In the place of Published::host_address, in the holder's namespace: for what comes in there, and
/// for no network beside.
inline constexpr const char* kFromOutside = "outside";

struct RuleInputs {
  Names names;
  Subnet subnet;
  std::vector<Lease> leases;           ///< of its containers, with what they have of this network
  std::vector<std::string> forwarded;  ///< host interfaces that forward because we switched it on
  bool internal = false;               ///< nothing leaves and nothing is published
};

/// Rules for nft(8) that put our table in place of the one before, all at once: what is published,
/// masquerading, and what must not pass. The same text again changes nothing.
/// Errors: bug (an address or name that nobody checked).
Result<std::string> make_rules(const RuleInputs& inputs);
/// The same for the table of bridge filters, which keeps containers from taking each other's
/// addresses; apart, because a kernel may lack it.
Result<std::string> make_bridge_rules(const RuleInputs& inputs);
/// Removes either table; one that is not there is fine.
std::string drop_rules(const Names& names);
std::string drop_bridge_rules(const Names& names);

}  // namespace berth::network
