// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// The container of a hook call, from the state on its standard input (runtime.md "State").
struct HookState {
  std::string id;
  int pid = 0;  ///< 0 after the container has ended
};
void fields(auto& v, HookState& s) {
  v.required("id", s.id);
  v.optional("pid", s.pid);
}
/// Parses the state that a hook gets. Errors: corrupt.
Result<HookState> parse_state(std::string_view text);

/// Makes the holder of an ordinary user's networks if there is none (holder.hpp).
Result<void> provide(const std::string& directory, const Request& request);

/// Connects the container of `state` to the network of `request`, writes its lease into
/// `directory`, and writes its hosts and resolver files. Detaches an old network first. On failure
/// the container has no network.
/// Errors: usage (a container that shares our network), and those of attach_bridge() and
/// attach_user_mode().
Result<void> attach(const std::string& directory, const HookState& state, const Request& request);

/// Connects the running container `id`, which is on a bridge, to one more network.
/// Errors: not_found (the container has no bridge now), exists (it is in that network already),
/// those of connect_bridge().
Result<void> connect(const std::string& directory, const std::string& id, const Attachment& wanted);
/// Disconnects the running container `id` from the network with the id `network`. No error if the
/// container is not in that network.
/// Errors: not_found, those of disconnect_bridge().
Result<void> disconnect(const std::string& directory, const std::string& id,
                        const std::string& network);

/// Removes the network of container `id`; no error if it has none.
Result<void> detach(const std::string& directory, const std::string& id);

}  // namespace berth::network
