// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::network {

/// A chain of another program (Docker, ufw, a site) that the kernel asks about each IPv4 packet
/// that is forwarded. nftables asks all such chains: that ours accepts a packet does not help where
/// another one drops it.
struct ForwardChain {
  std::string name;                  ///< "ip filter FORWARD"
  bool drops = false;                ///< its policy, for what none of its rules decides
  bool accepts_from = false;         ///< the bridge's packets
  bool accepts_to = false;           ///< packets for the bridge
  std::vector<std::string> handles;  ///< of the rules that say so
  bool operator==(const ForwardChain&) const = default;
};

/// Those of `listing`, which is nft(8)'s, with handles; the table named as the bridge is ours.
/// Pure.
std::vector<ForwardChain> forward_chains(std::string_view listing, std::string_view bridge);

/// The nft(8) commands that let the bridge's packets through `chains` that would drop them: at
/// their end, so that what the site refuses stays refused. Empty: nothing is to be done. The table
/// of make_rules() still filters what reaches a container.
std::string let_pass(const std::vector<ForwardChain>& chains, std::string_view bridge);

/// The nft(8) commands that remove the rules of let_pass() away.
std::string stop_passing(const std::vector<ForwardChain>& chains);

}  // namespace berth::network
