// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oci/runtime_spec.hpp"

/// The default configuration of every container. Pure.
namespace berth::oci {

Mount make_mount(std::string destination, std::string type, std::string source,
                 std::vector<std::string> options);

struct KernelMounts {
  /// sysfs shows the network namespace of the mounting process, so the kernel refuses a new one to
  /// a user namespace that does not own the network namespace: then the host's /sys is bound.
  bool bind_sysfs = false;
  bool tty_group = true;  ///< gid 5 exists inside
  uint64_t shm_bytes = uint64_t{64} << 20;
};
/// /proc, /dev, /dev/pts, /sys, /sys/fs/cgroup, /dev/mqueue and /dev/shm, with Docker's options.
std::vector<Mount> kernel_mounts(const KernelMounts& choices);

/// A config.json to start from, as other runtimes' `spec` writes it: a shell in ./rootfs.
Spec default_spec();
/// The same for an ordinary user, mapped to root inside: no network namespace, no limits.
Spec default_rootless_spec(uint32_t uid, uint32_t gid);

}  // namespace berth::oci
