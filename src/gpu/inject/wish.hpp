// SPDX-License-Identifier: Apache-2.0
// What a configuration that another engine wrote asks for. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/sources.hpp"
#include "oci/runtime_spec.hpp"
#include "policy/policy.hpp"

namespace berth::gpu {

/// Longest variable or annotation that is looked at: room for hundreds of ids. What an engine hands
/// on of an image is bounded by the engine alone.
inline constexpr size_t kLongestWish = size_t{16} << 10;

struct Wish {
  Sources sources;
  std::vector<std::string> warnings;
};

/// Takes NVIDIA's hook out of it. True where it was there.
bool take_nvidia_hook(oci::Hooks& hooks);

/// Reads what `spec` asks for: annotations of the policy's prefixes with CDI names, the variables
/// of its process, mounts of /dev/null below kVolumeDevices. NVIDIA's hook is taken out of it: it
/// is how dockerd passes --gpus on, with what it is to be in NVIDIA_VISIBLE_DEVICES at the end of
/// the variables. That is the user's word and needs no policy; so are annotations, but where the
/// engine lets an image write them they count as its variables do.
/// Errors: usage (a list longer than kLongestWish).
Result<Wish> take_wish(oci::Spec& spec, const policy::Gpu& policy);

/// Adds the batch job in whose environment (`caller`) the runtime was called. It takes away only:
/// an engine may have been started from a job's shell. What the container has of the job's own
/// variables is to be made right for it; a value of the user's own stays.
void take_job(const std::vector<std::string>& caller, Sources& sources, policy::Gpu& policy);

/// Of several values of one NVIDIA_ variable leaves the last, which is the one that counts: dockerd
/// appends its own to the user's.
void keep_last(std::vector<std::string>& env);

}  // namespace berth::gpu
