// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/gpu/list.hpp"

namespace berth::cli {

/// The terms of a container's lease, for people: " (exclusive)", " (30% 1GiB)", or nothing.
std::string terms_of(const gpu::Lease& lease);

}  // namespace berth::cli
