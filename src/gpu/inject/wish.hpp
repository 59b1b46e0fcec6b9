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

/// Maximal length of a variable or annotation: room for hundreds of ids. Otherwise
/// only the engine limits the values that it copies from an image.
inline constexpr size_t kLongestWish = size_t{16} << 10;

struct Wish {
  Sources sources;
  std::vector<std::string> warnings;
};

/// Removes NVIDIA's hook. Returns whether it was present.
bool take_nvidia_hook(oci::Hooks& hooks);

/// Reads the request of `spec`: annotations of the policy's prefixes with CDI names, the variables
/// of its process, mounts of /dev/null below kVolumeDevices. Removes NVIDIA's hook: dockerd adds
/// the hook for --gpus, and appends NVIDIA_VISIBLE_DEVICES with the devices to the variables. That
/// is a request of the user and needs no policy. Annotations are requests of the user too, unless
/// the engine lets an image set them: then they are treated like variables of the image.
/// Errors: usage (a list longer than kLongestWish).
Result<Wish> take_wish(oci::Spec& spec, const policy::Gpu& policy);

/// Applies the limits of the batch job in which the runtime was called; `caller` is the environment
/// of the runtime. A job grants nothing: an engine may have been started from a job's shell.
/// The job's own variables are translated for the container; the user's values stay.
void take_job(const std::vector<std::string>& caller, Sources& sources, policy::Gpu& policy);

/// If an NVIDIA_ variable occurs several times, keeps the last one, which counts: dockerd appends
/// its variables to those of the user.
void keep_last(std::vector<std::string>& env);

}  // namespace berth::gpu
