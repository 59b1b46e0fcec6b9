// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES and similar variables for the container. The container counts its GPUs from
// 0, so the numbers of the job would name other GPUs there, or none.
#pragma once

#include <string>
#include <vector>

#include "gpu/grant/request.hpp"
#include "gpu/grant/select.hpp"

namespace berth::gpu {

/// The replacements for the job's variables of request.translate: "CUDA_VISIBLE_DEVICES=1,0", the
/// granted GPUs in the order of `granted`, numbered within the grant in PCI order, with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID. Slices are named by id, and so are GPUs if the container orders
/// them by speed (CUDA_DEVICE_ORDER).
std::vector<std::string> translate_selection(const Request& request,
                                             const std::vector<Selected>& granted);

/// A warning for each of request.typed that names no granted GPU, or that CUDA would cut short:
/// "CUDA_VISIBLE_DEVICES=3 names no GPU of the container, which has 1 GPU". An empty value and "-1"
/// name no GPU on purpose.
std::vector<std::string> stale_selections(const Request& request,
                                          const std::vector<Selected>& granted);

}  // namespace berth::gpu
