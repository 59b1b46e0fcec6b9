// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/fields.hpp"

namespace berth::network {

/// What `berth-network forward` says of the firewall: its bridge, and chains of others that drop
/// what goes from there or to there ("ip filter FORWARD").
struct ForwardReport {
  std::string bridge;
  std::vector<std::string> dropping;
};
template <class V>
void fields(V& v, ForwardReport& r) {
  v.required("bridge", r.bridge);
  v.always("dropping", r.dropping);
}

/// Chains of `listing`, the rules of a machine as nft(8) lists them, that drop IPv4 by default
/// while it is forwarded, in tables without rules that accept `bridge` in both directions. nftables
/// asks every chain: that ours accepts does not help. Pure.
std::vector<std::string> dropping_chains(std::string_view listing, std::string_view bridge);

}  // namespace berth::network
