// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES and similar variables, for the container: it counts its GPUs from 0, so a
// job's numbers would name others there, or none.
#pragma once

#include <string>
#include <vector>

#include "gpu/grant/request.hpp"
#include "gpu/grant/select.hpp"

namespace berth::gpu {

/// The replacements for the job's variables of request.translate: "CUDA_VISIBLE_DEVICES=1,0", the
/// granted GPUs in the order of `granted`, numbered within the grant in PCI order, with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID; ids for slices, and if the container counts by speed.
std::vector<std::string> translate_selection(const Request& request,
                                             const std::vector<Selected>& granted);

/// A warning for each of request.typed that names no granted GPU, or that CUDA would cut short:
/// "CUDA_VISIBLE_DEVICES=3 names no GPU of the container, which has 1 GPU". An empty value and "-1"
/// name none on purpose.
std::vector<std::string> stale_selections(const Request& request,
                                          const std::vector<Selected>& granted);

}  // namespace berth::gpu
