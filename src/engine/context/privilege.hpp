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

/// The caller before enter_identity(): none for root of the initial user namespace, else the
/// caller's id in the parent of the caller's user namespace.
std::optional<unsigned> calling_user();

/// The same with the caller's groups; before enter_identity(). Leaves out groups without a known
/// id.
Caller who_calls();

/// Sets the identity of this process once, before threads start and files are opened. Root of the
/// initial user namespace stays as it is; root of another one counts as `single` or `mapped` by the
/// size of its map; an ordinary user enters a new user namespace with subordinate ids, or, without
/// a warning, with one id if the user has none.
/// Needs::nothing enters no namespace, and returns the identity that an ordinary user would get.
/// Errors: denied (Needs::root), unsupported (user namespaces are off; the hint names the switch).
Result<Identity> enter_identity(Needs needs, Log& log);

/// The same for Needs::container: an ordinary user enters the user namespace of `process`, since
/// from another one its processes and mounts are out of reach.  Errors: denied, not_found, io.
/// With `start_time`, `process` must have started at that time.
Result<Identity> join_user_namespace(int64_t process, std::optional<uint64_t> start_time = {});

/// Whether this process is root of a user namespace other than the machine's; call before
/// enter_identity(), which then stays there.
bool in_foreign_namespace();

}  // namespace berth::engine
