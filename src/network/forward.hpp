// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::network {

/// A chain of another program (Docker, ufw, a site) through which each forwarded IPv4 packet
/// passes. nftables runs all such chains: our accept does not help if another one drops.
struct ForwardChain {
  std::string name;                  ///< "ip filter FORWARD"
  bool drops = false;                ///< its policy, for packets that no rule decides
  bool accepts_from = false;         ///< the bridge's packets
  bool accepts_to = false;           ///< packets for the bridge
  std::vector<std::string> handles;  ///< of those accepting rules
  bool operator==(const ForwardChain&) const = default;
};

/// The forward chains in `listing`, of nft(8), with handles; the table named after the bridge is
/// ours. Pure.
std::vector<ForwardChain> forward_chains(std::string_view listing, std::string_view bridge);

/// The nft(8) commands that let the bridge's packets through `chains` that would drop them:
/// appended, so that what the site refuses stays refused. Empty: not necessary. The table of
/// make_rules() still filters packets to containers.
std::string let_pass(const std::vector<ForwardChain>& chains, std::string_view bridge);

/// The nft(8) commands that remove the rules of let_pass().
std::string stop_passing(const std::vector<ForwardChain>& chains);

}  // namespace berth::network
