// SPDX-License-Identifier: Apache-2.0
// The holder: a process of an ordinary user that keeps one network namespace, in which the bridges
// of that user's networks are, and the helper that leads out of it (docs/decisions/0178).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"

namespace berth::network {

/// The one that lives. Errors: corrupt, io.
Result<std::optional<Holder>> find_holder(const Leases& leases);

struct Provided {
  Holder holder;
  bool is_new = false;  ///< its namespace has nothing of containers that run
};
/// The one that lives, or a new one in our own user namespace, with the helper that `request`
/// names. Errors: denied (it is in another user namespace), those of the helper.
Result<Provided> provide_holder(const Leases& leases, const Request& request);

/// Moves this process into the network namespace that `holder` keeps, and, where it is outside,
/// into its user namespace before. There is no way back. Errors: not_found (it has ended), denied.
Result<void> enter_space(const Holder& holder);

/// Makes the helper publish what `current` has, as far as that works, and nothing else.
/// Errors: the first one, of add_ports().
Result<void> forward_ports(const Leases& leases, const Holder& holder,
                           const std::vector<Lease>& current);
/// Makes it publish `ports` too.
/// Errors: busy (a port), unsupported (pasta, which learns of no ports while it runs), io.
Result<void> add_ports(const Leases& leases, const Holder& holder,
                       const std::vector<Published>& ports);

/// Chooses the ports of the holder's namespace by which those of `ports` are led on.
void choose_inner_ports(std::vector<Published>& ports, const std::vector<Lease>& current);

/// Is the holder: says on standard output when it is there, and returns when nobody needs it any
/// more. Errors: those of the helper.
Result<void> hold(const std::string& directory, const Request& request);

}  // namespace berth::network
