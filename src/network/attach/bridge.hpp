// SPDX-License-Identifier: Apache-2.0
// Root's networks: a bridge of this machine for each, an interface for each container in it, and
// nftables rules. Everything it makes is in the bridges, two tables named after each, and the
// sysctls that are listed in a file; the next call repairs what a kill left half done.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"

namespace berth::network {

/// Adds to `space`, the container's network namespace, an interface "eth0" on a bridge with an
/// address and a default route, another one for each further network, and publishes its ports.
/// `lease` comes with id and holder, with `outside` also with ports and nameservers, and gets the
/// rest. On failure nothing of it stays.
/// Errors: busy (a port), denied, unsupported (no subnet is free, the kernel has no bridges).
Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease);

/// Connects the container of `lease`, which runs in `space`, to one more network, with `ports` if
/// that is its first with a way out, and writes the lease. On failure nothing has changed.
/// Errors: as attach_bridge(), usage (the address).
Result<void> connect_bridge(Leases& leases, const Attachment& wanted, std::vector<Published> ports,
                            const sys::Fd& space, Lease& lease);
/// Disconnects the container of `lease` from the network with the id `network`, or, for "", from
/// the unnamed bridge. Its published ports move to its next network that is not internal, if any.
/// Errors: io, denied.
Result<void> disconnect_bridge(Leases& leases, const std::string& network, const sys::Fd& space,
                               Lease& lease);

/// A running container.
struct Placed {
  Lease lease;
  sys::Fd space;
};
/// Makes the bridges, interfaces and rules of `containers` in a new namespace that has none of
/// them.
/// Errors: io, denied, those of attach_bridge().
Result<void> restore_bridges(Leases& leases, const std::vector<Placed>& containers);

/// Removes what `lease` describes; missing parts are fine.
Result<void> detach_bridge(Leases& leases, const Lease& lease);

}  // namespace berth::network
