// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oci/runtime_spec.hpp"

/// The defaults of every container. engine/decide/spec and engine/request/security apply them for
/// `berth run`. Pure.
namespace berth::oci {

Mount make_mount(std::string destination, std::string type, std::string source,
                 std::vector<std::string> options);

struct KernelMounts {
  /// Bind the host's /sys. sysfs shows the network namespace of the process that mounts it, so the
  /// kernel refuses to mount it in a user namespace that does not own the network namespace.
  bool bind_sysfs = false;
  bool tty_group = true;  ///< gid 5 exists in the container
  uint64_t shm_bytes = uint64_t{64} << 20;
};
/// /proc, /dev, /dev/pts, /sys, /sys/fs/cgroup, /dev/mqueue and /dev/shm, with Docker's options.
std::vector<Mount> kernel_mounts(const KernelMounts& choices);

/// Paths that are masked because they reveal facts about the host or can change it: Docker's.
std::span<const std::string_view> default_masked_paths();

/// Paths of /proc that are made read-only: Docker's.
std::span<const std::string_view> default_readonly_paths();

/// A config.json to start from, as other runtimes' `spec` writes it: a shell in ./rootfs. Only for
/// berth-runtime's verb `spec`.
Spec template_spec();
/// template_spec() for an ordinary user, mapped to root in the container: no network namespace, no
/// limits.
Spec template_rootless_spec(uint32_t uid, uint32_t gid);

}  // namespace berth::oci
