// SPDX-License-Identifier: Apache-2.0
// The networks of root: each has a bridge on this machine, an interface for each container, and
// nftables rules. All changes are in the bridges, in two tables named after each bridge, and in the
// sysctls that are listed in a file. If a call is killed, the next call repairs what it left half
// done.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"

namespace berth::network {

/// Adds to `space`, the container's network namespace, an interface "eth0" on a bridge, with an
/// address and a default route, and one more interface for each further network. Publishes the
/// container's ports. The caller fills in Lease::id and holder, and with Request::outside also
/// ports and nameservers; this function fills in the rest. On failure it undoes everything.
/// Errors: busy (a port), denied, unsupported (no subnet is free, the kernel has no bridges).
Result<void> attach_bridge(Leases& leases, const Request& request, const sys::Fd& space,
                           Lease& lease);

/// Connects the container of `lease`, which runs in `space`, to one more network, and writes the
/// lease. Publishes `ports` if that network is the container's first with a way out. On failure
/// nothing has changed.
/// Errors: as attach_bridge(), usage (the address).
Result<void> connect_bridge(Leases& leases, const Attachment& wanted, std::vector<Published> ports,
                            const sys::Fd& space, Lease& lease);
/// Disconnects the container of `lease` from the network with the id `network`, or, for "", from
/// the unnamed bridge. The published ports move to the container's next network that is not
/// internal, if any.
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
