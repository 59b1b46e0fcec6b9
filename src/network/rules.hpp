// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/address.hpp"
#include "network/request.hpp"

namespace berth::network {

/// The names that one instance of Berth uses on a machine. Each state directory, the default or
/// another one, is an instance with its own bridge and rules.
struct InterfaceNames {
  std::string bridge;       ///< also the name of the tables: "berth0"; kBridges stands for all
                            ///< bridges
  std::string port_prefix;  ///< of the host's ends of the containers' interfaces: "bv0."
};
/// The names for `directory`, where the leases are. They have only letters, digits and dots,
/// whatever the name of `directory`, because they become part of rules. The prefix and five digits
/// have at most 15 bytes.
InterfaceNames names_for(const std::string& directory);

inline constexpr const char* kBridges = "berth*";

/// The ids of the networks of one machine differ in so many digits at their beginning.
inline constexpr size_t kNetworkDigits = 6;
/// The names for the named network with the id `id`, 64 hexadecimal digits.
InterfaceNames names_for_network(const std::string& id);

/// The interface of the holder's network namespace to the outside.
inline constexpr const char* kOutsideInterface = "tap0";
/// Instead of Published::host_address, in the holder's namespace: only for connections from
/// outside, not from other networks.
inline constexpr const char* kFromOutside = "outside";

/// The input of the rules. We made or parsed every string in it.
struct RuleInputs {
  InterfaceNames names;
  Subnet subnet;
  std::vector<Lease> leases;           ///< of its containers, with the address and ports in it
  std::vector<std::string> forwarded;  ///< host interfaces for which we enabled forwarding
  bool internal = false;               ///< no way out, and no published ports
};

/// Rules for nft(8) that atomically replace our table: published ports, masquerading, and drops.
/// Applying the same rules again changes nothing.
/// Errors: bug (an unchecked address or name).
Result<std::string> make_rules(const RuleInputs& inputs);
/// As make_rules(), for the table of bridge filters, which keeps containers from using each other's
/// addresses; separate, because a kernel may lack it.
Result<std::string> make_bridge_rules(const RuleInputs& inputs);
/// Removes either table; a missing one is fine.
std::string drop_rules(const InterfaceNames& names);
std::string drop_bridge_rules(const InterfaceNames& names);

/// A chain of another program (Docker, ufw, a site) through which each forwarded IPv4 packet
/// passes. nftables runs all such chains: our accept does not help if another one drops.
struct ForwardChain {
  std::string name;                  ///< "ip filter FORWARD"
  bool drops = false;                ///< its policy, for packets that no rule decides
  bool accepts_from = false;         ///< a rule accepts packets from the bridge
  bool accepts_to = false;           ///< a rule accepts packets to the bridge
  std::vector<std::string> handles;  ///< of those accepting rules
  bool operator==(const ForwardChain&) const = default;
};

/// The forward chains in `listing`, the output of nft(8) with handles. The table named after the
/// bridge is ours. Pure.
std::vector<ForwardChain> forward_chains(std::string_view listing, std::string_view bridge);

/// The nft(8) commands that let the bridge's packets through `chains` that would drop them:
/// they append rules, so that packets that the site refuses stay refused. Empty: not necessary. The
/// table of make_rules() still filters packets to containers.
std::string let_pass(const std::vector<ForwardChain>& chains, std::string_view bridge);

/// The nft(8) commands that remove the rules of let_pass().
std::string stop_passing(const std::vector<ForwardChain>& chains);

}  // namespace berth::network
