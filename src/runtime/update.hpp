// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's; changing devices needs CAP_MKNOD in the
// initial user namespace. Hostile: the processes in the container, which may fork, and their
// changes to /dev.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Reads a resources object from `file`, or from standard input if `file` is "-".
/// Errors: not_found, denied, corrupt (as oci::parse_resources).
Result<oci::Resources> read_resources(const std::string& file);

/// The same for a whole config.json. Errors: those of oci::parse_spec() too.
Result<oci::Spec> read_wanted_spec(const std::string& file);

/// Applies the members of `resources` that are present to a container with processes. Device rules
/// replace all old ones, except those for the devices that berth-runtime itself added.
/// Errors: usage ("container not running"), and as CgroupSet::update() and refuse_or_warn().
Result<void> update(const Store& store, const std::string& id, const oci::Resources& resources,
                    Log& log);

/// The device nodes to add and to remove between `before` and `after`, compared by path and number.
struct DeviceChange {
  std::vector<oci::Device> added;
  std::vector<oci::Device> removed;
};
DeviceChange compare_devices(const std::vector<oci::Device>& before,
                             const std::vector<oci::Device>& after);  ///< Pure.

/// A second configuration in the bundle, next to config.json. If it exists, an update to it was
/// killed halfway, and the container may also have its devices.
inline constexpr const char* kNextConfig = "config.next.json";

/// Gives a running container the devices of `wanted`: linux.devices, and the rules for them.
/// Removes the devices that its bundle's configurations have and `wanted` has not. Removal only
/// prevents a new open(), so it is refused while a thread in the container has such a device open
/// or mapped. Descriptors that are in flight on a socket, or that only an io_uring holds, are not
/// found. After an error all is as before; only `interrupted` may also mean that something could
/// not be restored. Errors: usage (the container does not run), unsupported (a user namespace; a
/// /dev that is not a tmpfs of the container), busy (a device is in use, or that cannot be found
/// out), and those of update().
Result<void> change_devices(const Store& store, const std::string& id, const oci::Spec& wanted,
                            Log& log);

}  // namespace berth::runtime
