// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "network/request.hpp"

/// Reads the files of berth-network: the leases of running containers, and the record of the
/// process that keeps a user's networks (the holder).
namespace berth::engine {

/// The directory of the leases and the holder's record.
std::string network_directory(const Context& context);

/// The current lease of container `id`; nothing if the container has no private network with
/// outside access, or does not run.  Errors: corrupt, io.
Result<std::optional<network::Lease>> find_lease(const Context& context, const std::string& id);
/// The leases of all containers, by id, for lists. Skips leases that cannot be read.
std::map<std::string, network::Lease> list_leases(const Context& context);

/// The holder of this user's networks, if it runs. Ignores a record that cannot be parsed.
/// Errors: denied (another user owns the record), io.
Result<std::optional<network::Holder>> find_holder(const Context& context);

}  // namespace berth::engine
