// SPDX-License-Identifier: Apache-2.0
// The network of an ordinary user: pasta(1) or slirp4netns(1), one process per container, turns the
// container's packets into connections of the host.
// Which of the two: engine/network/choose_helper.
#pragma once

#include "base/result.hpp"
#include "network/attach/leases.hpp"
#include "network/request.hpp"
#include "sys/fd/fd.hpp"

namespace berth::network {

/// Starts the helper for `space`, which publishes the container's ports. The caller fills in
/// Lease::id, mode and holder; this function fills in the rest. On failure it undoes everything.
/// Errors: busy (a port), denied, io with the helper's own message.
Result<void> attach_user_mode(Leases& leases, const Request& request, const sys::Fd& space,
                              Lease& lease);

/// Ends the helper of `lease` and removes the lease.
Result<void> detach_user_mode(Leases& leases, const Lease& lease);

/// Waits until the container of lease `id` has ended, then detaches it: the helper, which holds the
/// container's network namespace open, does not notice by itself.
Result<void> keep_until_end(const std::string& directory, const std::string& id);

}  // namespace berth::network
