// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "network/request.hpp"

namespace berth::network {

/// Makes slirp4netns, which listens at `socket_path`, forward the host's ports of `wanted` to their
/// inner ports, where possible, and no others. Errors: the first one: busy (a port), io (it does
/// not answer).
Result<void> forward_by_slirp(const std::string& socket_path, const std::vector<Published>& wanted);

}  // namespace berth::network
