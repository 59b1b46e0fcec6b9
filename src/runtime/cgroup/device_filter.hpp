// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/bpf.h>

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// `rules` followed by those that every container gets: mknod of any node (whether a process may
/// open the node is decided separately), and access to null, zero, full, random, urandom, tty,
/// console, ptmx and pts.
std::vector<oci::DeviceRule> with_default_devices(const std::vector<oci::DeviceRule>& rules);

/// Builds the BPF_PROG_TYPE_CGROUP_DEVICE program of `rules`. Each of read, write and mknod is
/// decided by the last rule that names the device and this access; access that no rule names is
/// denied.
/// Errors: corrupt (an unknown type or access character, by its JSON path).
/// Source: runtime-spec config-linux.md "Allowed Device list"; linux/bpf.h bpf_cgroup_dev_ctx.
Result<std::vector<bpf_insn>> compile_device_filter(std::span<const oci::DeviceRule> rules);

/// The same rules as lines for the v1 files. The first of each pair is the file, "devices.allow" or
/// "devices.deny".
Result<std::vector<std::pair<std::string, std::string>>> device_lines(
    std::span<const oci::DeviceRule> rules);

/// Makes `program` the only device program of the cgroup v2 directory `cgroup`. During the
/// exchange, every access that the old and the new program both forbid stays forbidden.
/// Errors: denied (no CAP_BPF or CAP_SYS_ADMIN in the initial user namespace), unsupported.  bpf(2)
Result<void> attach_device_filter(const sys::Fd& cgroup, std::span<const bpf_insn> program);

}  // namespace berth::runtime
