// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/log.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The privileges that a verb needs before it runs.
enum class Needs {
  nothing,
  user_namespace,
  container,  ///< the user namespace of the running container that the first argument names
  root,
};

/// The caller's user id: none for root of the initial user namespace, else the id in the parent of
/// the caller's user namespace. Call before enter_identity().
std::optional<unsigned> calling_user();

/// The same with the caller's groups. Call before enter_identity(). Leaves out groups without a
/// known id.
Caller who_calls();

/// Sets the identity of this process once, before threads start and files are opened. Root of the
/// initial user namespace stays as it is; root of another one is `single` or `mapped`, depending on
/// the size of the id map. An ordinary user enters a new user namespace with subordinate ids; a
/// user without subordinate ids enters one with a single id, without a warning.
/// Needs::nothing enters no namespace, and returns the identity that an ordinary user would get.
/// Errors: denied (Needs::root), unsupported (user namespaces are off; the hint names the switch).
Result<Identity> enter_identity(Needs needs, Log& log);

/// The same for Needs::container: an ordinary user enters the user namespace of `process`, because
/// the processes and mounts there cannot be reached from another user namespace.  Errors: denied,
/// not_found, io.
/// With `start_time`, `process` must have started at that time.
Result<Identity> join_user_namespace(int64_t process, std::optional<uint64_t> start_time = {});

/// Whether this process is root of a user namespace other than the machine's; call before
/// enter_identity(), which then stays there.
bool in_foreign_namespace();

}  // namespace berth::engine
