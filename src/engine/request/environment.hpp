// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/request/request.hpp"

namespace berth::engine {

/// The entries of the request between those of the site. A name alone takes a variable away that
/// was not inherited.
std::vector<std::string> environment_of(const RunRequest& request);
/// The same without what the site says of NVIDIA_VISIBLE_DEVICES.
std::vector<std::string> without_site_selection(const RunRequest& request);

}  // namespace berth::engine
