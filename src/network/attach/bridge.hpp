// SPDX-License-Identifier: Apache-2.0
// Root's networks: a bridge of this machine for each, an interface for each container in it, and
// rules of nftables. All that it makes lies in the bridges, two tables of the name of each and the
// switches that are listed in a file; whatever a kill left half done, the next call puts right.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"

namespace berth::network {

/// Gives `space`, the container's network namespace, an interface "eth0" on a bridge with an
/// address and a default route, another one for each further network, and publishes its ports.
/// `lease` comes with id and holder, with `outside` also with ports and nameservers, and gets the
/// rest. On failure nothing of it stays. Errors:
/// busy (a port), denied, unsupported (no subnet is free, the kernel has no bridges).
Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease);

/// Puts the container of `lease`, which runs in `space`, into one more network, with `ports` where
/// that is its first that leads out, and writes the lease. On failure it stays as it was.
/// Errors: as attach_bridge(), usage (the address).
Result<void> connect_bridge(Leases& leases, const Attachment& wanted, std::vector<Published> ports,
                            const sys::Fd& space, Lease& lease);
/// Disconnects the container of `lease` from the network with the id `network`, or, for "", from
/// the bridge without a name. Its published ports then lead to its next network that is not
/// internal; without one it has none. Errors: io, denied.
Result<void> disconnect_bridge(Leases& leases, const std::string& network, const sys::Fd& space,
                               Lease& lease);

/// A container that runs.
struct Placed {
  Lease lease;
  sys::Fd space;
};
/// Makes bridges, interfaces and rules of `containers` anew in a namespace that has none of them.
/// Errors: io, denied, those of attach_bridge().
Result<void> restore_bridges(Leases& leases, const std::vector<Placed>& containers);

/// Takes back what `lease` has; what has gone already is fine.
Result<void> detach_bridge(Leases& leases, const Lease& lease);

/// Puts bridge, interfaces and rules in the state that the leases in `current` want; the last one
/// takes all of it along. Errors: io, denied.
Result<void> tidy_bridge(Leases& leases, const std::vector<Lease>& current);

}  // namespace berth::network
