// SPDX-License-Identifier: Apache-2.0
// The holder: a process of an ordinary user that keeps one network namespace, with the bridges of
// that user's networks, and the helper that connects it to the outside (docs/decisions/0178).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"

namespace berth::network {

/// The living holder. Errors: corrupt, io.
Result<std::optional<Holder>> find_holder(const Leases& leases);

struct Provided {
  Holder holder;
  bool is_new = false;  ///< it is new: its namespace lacks the interfaces of containers that
                        ///< already run
};
/// The living holder, or a new one in our own user namespace, with the helper that `request` names.
/// Errors: denied (it is in another user namespace), those of the helper.
Result<Provided> provide_holder(const Leases& leases, const Request& request);

/// Moves this process into the holder's network namespace, and before that, if necessary, into the
/// holder's user namespace. There is no way back. Errors: not_found (the holder has ended), denied.
Result<void> enter_space(const Holder& holder);

/// Makes the helper publish the ports of `current`, where possible, and no others.
/// Errors: the first one, of add_ports().
Result<void> forward_ports(const Leases& leases, const Holder& holder,
                           const std::vector<Lease>& current);
/// Makes the helper publish `ports` too.
/// Errors: busy (a port), unsupported (pasta, which accepts no new ports while it runs), io.
Result<void> add_ports(const Leases& leases, const Holder& holder,
                       const std::vector<Published>& ports);

/// Chooses the ports in the holder's namespace to which the helper forwards `ports`.
void choose_inner_ports(std::vector<Published>& ports, const std::vector<Lease>& current);

/// The holder's main function: reports on standard output when it is ready, and returns when it is
/// not needed any more. Errors: those of the helper.
Result<void> hold(const std::string& directory, const Request& request);

}  // namespace berth::network
