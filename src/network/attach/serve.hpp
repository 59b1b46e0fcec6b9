// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// Who a hook is called for: of the state on its standard input (runtime.md "State").
struct HookState {
  std::string id;
  int pid = 0;  ///< 0 after the end
};
template <class V>
void fields(V& v, HookState& s) {
  v.required("id", s.id);
  v.optional("pid", s.pid);
}
/// Errors: corrupt.
Result<HookState> parse_state(std::string_view text);

/// Gives the container of `state` the network of `request`, writes its lease into `directory` and
/// its files of names. What it had before is detached first. On failure it has none.
/// Errors: usage (a container that shares our network), and those of attach_bridge() and
/// attach_user_mode().
Result<void> attach(const std::string& directory, const HookState& state, const Request& request);

/// Takes back what container `id` has; one that has nothing is fine.
Result<void> detach(const std::string& directory, const std::string& id);

}  // namespace berth::network
