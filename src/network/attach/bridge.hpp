// SPDX-License-Identifier: Apache-2.0
// Root's network: a bridge of this machine, an interface for each container, and rules of
// nftables. All that it makes lies in one bridge, two tables of its name and the switches that are
// listed in a file; whatever a kill left half done, the next call puts right.
#pragma once

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd.hpp"

namespace berth::network {

/// Gives `space`, the container's network namespace, an interface "eth0" on the bridge with an
/// address and a default route, and publishes its ports. `lease` comes with id and holder, and gets
/// the rest. On failure nothing of it stays.
/// Errors: busy (a port), denied, unsupported (no subnet is free, the kernel has no bridges).
Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease);

/// Takes back what `lease` has; what has gone already is fine.
Result<void> detach_bridge(Leases& leases, const Lease& lease);

/// Puts bridge, interfaces and rules in the state that the leases in `current` want; the last one
/// takes all of it along. Errors: io, denied.
Result<void> tidy_bridge(Leases& leases, const std::vector<Lease>& current);

}  // namespace berth::network
