// SPDX-License-Identifier: Apache-2.0
#include "engine/network/default_network.hpp"

#include "engine/request/text.hpp"
#include "policy/policy.hpp"

namespace berth::engine {

Result<DefaultNetwork> default_network(const Environment& environment, const std::string& config) {
  if (auto own = environment.get_filled(kNetworkVariable)) {
    Network network = TRY_CTX(parse_network(*own), std::string("cannot use ") + kNetworkVariable);
    return DefaultNetwork{network, kNetworkVariable};
  }
  policy::Compiled site =
      TRY_CTX(policy::read_compiled(config), "cannot read the policy of this machine");
  const std::string& mode = site.policy.network.default_mode;
  if (!mode.empty()) return DefaultNetwork{TRY(parse_network(mode)), "the policy of this machine"};
  if (is_in_job(environment)) return DefaultNetwork{Network::host, "a batch job"};
  return DefaultNetwork{Network::bridge, "built in"};
}

}  // namespace berth::engine
