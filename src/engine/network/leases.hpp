// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "network/request.hpp"

/// Reads the files of berth-network: the leases of running containers, and the record of the
/// process that holds a user's networks.
namespace berth::engine {

/// Where leases and the holder's record are.
std::string network_directory(const Context& context);

/// What container `id` has of its network now: nothing when it has none of its own with a way out,
/// or does not run.  Errors: corrupt, io.
Result<std::optional<network::Lease>> find_lease(const Context& context, const std::string& id);
/// The same of all containers, by their ids, for lists: what cannot be read is left out.
std::map<std::string, network::Lease> list_leases(const Context& context);

/// The process that holds this user's networks, if it runs. A record that nobody can read names
/// none. Errors: denied (the record is not the user's own), io.
Result<std::optional<network::Holder>> find_holder(const Context& context);

}  // namespace berth::engine
