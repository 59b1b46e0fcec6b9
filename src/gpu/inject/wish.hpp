// SPDX-License-Identifier: Apache-2.0
// The GPU request in a configuration that another engine wrote. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/sources.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/policy.hpp"

namespace berth::gpu {

/// Maximal length of a variable or annotation: room for hundreds of ids. Only the engine bounds the
/// values that it copies from an image.
inline constexpr size_t kLongestWish = size_t{16} << 10;

struct Wish {
  Sources sources;
  std::vector<std::string> warnings;
};

/// Removes NVIDIA's hook. True if it was there.
bool take_nvidia_hook(oci::Hooks& hooks);

/// Reads the request of `spec`: annotations of the policy's prefixes with CDI names, the variables
/// of its process, mounts of /dev/null below kVolumeDevices. Removes NVIDIA's hook: through it
/// dockerd passes --gpus on, with the devices in NVIDIA_VISIBLE_DEVICES at the end of the
/// variables. That is the user's request and needs no policy. So are annotations, unless the engine
/// lets an image write them: then they count as its variables do.
/// Errors: usage (a list longer than kLongestWish).
Result<Wish> take_wish(oci::Spec& spec, const policy::Gpu& policy);

/// Applies the batch job that the runtime was called in, by its environment, `caller`. A job only
/// limits, because an engine may have been started from a job's shell. The job's own variables are
/// translated for the container; the user's values stay.
void take_job(const std::vector<std::string>& caller, Sources& sources, policy::Gpu& policy);

/// If an NVIDIA_ variable has several values, keeps the last, which counts: dockerd appends its own
/// to the user's.
void keep_last(std::vector<std::string>& env);

}  // namespace berth::gpu
