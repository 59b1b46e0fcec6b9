// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/log.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// What a verb needs of the process before it runs.
enum class Needs {
  nothing,
  user_namespace,
  container,  ///< the user namespace of the running container that the first argument names
  root,
};

/// The caller before enter_identity(): nothing for root of the initial user namespace, else the id
/// that the namespace outside of the caller's knows.
std::optional<unsigned> calling_user();

/// The same with his groups; before enter_identity(). Groups that are not known are left out.
Caller who_calls();

/// Settles the identity of this process once, before threads and before files are opened.
/// Root of the initial user namespace stays what it is; root of another one counts as `single` or
/// `mapped` by the size of its map; an ordinary user enters a user namespace of its own with
/// subordinate ids, or with one id and a warning-free fall-back where there are none.
/// With Needs::nothing nothing is entered: the identity is the one that an ordinary user would get.
/// Errors: denied (Needs::root), unsupported (user namespaces are off; the hint names the switch).
Result<Identity> enter_identity(Needs needs, Log& log);

/// The same for Needs::container: an ordinary user enters the user namespace of `process`, whose
/// processes and mounts another one of his could not touch.  Errors: denied, not_found, io.
/// With a start time it has to be the process that started then.
Result<Identity> join_user_namespace(int64_t process, std::optional<uint64_t> start_time = {});

/// Whether this process is root of a user namespace that is not the machine's, before
/// enter_identity(): then it stays there.
bool in_foreign_namespace();

}  // namespace berth::engine
