// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: the processes inside, which may
// fork.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/state/find.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Reads a resources object from `file`, from standard input when that is "-".
/// Errors: not_found, denied, corrupt (as oci::parse_resources).
Result<oci::Resources> read_resources(const std::string& file);

/// The same for a whole configuration. Errors: those of oci::parse_spec() too.
Result<oci::Spec> read_wanted_spec(const std::string& file);

/// Applies the members of `resources` that are present to a container with processes. Device rules
/// replace all old ones, except those for the devices that berth-runtime itself added.
/// Errors: usage ("container not running"), and as CgroupSet::update() and judge().
Result<void> update(const Store& store, const std::string& id, const oci::Resources& resources,
                    Log& log);

/// A container with processes. Errors: those of find(), usage ("container not running").
Result<Found> find_changeable(const Store& store, const std::string& id);
/// update() of a container that is found already.
Result<void> apply_resources(Found& found, oci::Resources resources, Log& log);

}  // namespace berth::runtime
