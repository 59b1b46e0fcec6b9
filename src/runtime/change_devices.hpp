// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's, of the machine: CAP_MKNOD. Hostile: the
// processes inside, and what they have made of /dev meanwhile.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// The nodes that come and go when `before` becomes `after`; by path and number.
struct DeviceChange {
  std::vector<oci::Device> added;
  std::vector<oci::Device> removed;
};
DeviceChange compare_devices(const std::vector<oci::Device>& before,
                             const std::vector<oci::Device>& after);  ///< Pure.

/// In the bundle beside config.json: a configuration that the container may have the devices of
/// too, because the process that was giving them was killed.
inline constexpr const char* kNextConfig = "config.next.json";

/// Gives a running container the devices of `wanted`: linux.devices, and the rules for them. What
/// its bundle's configurations have and `wanted` has not is taken from it, which holds for whoever
/// opens it from then on; so it is refused where a thread inside has such a device open or mapped.
/// What is handed over by a socket meanwhile, or is in a ring of io_uring alone, is not seen. After
/// an error all is as before, but after interrupted, which is also that of what could not be put
/// back. Errors: usage (it does not run), unsupported (a user namespace; its /dev is not a tmpfs of
/// its own), busy (a device is in use, or that cannot be found out), and those of update().
Result<void> change_devices(const Store& store, const std::string& id, const oci::Spec& wanted,
                            Log& log);

}  // namespace berth::runtime
