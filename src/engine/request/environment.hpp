// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/request/request.hpp"

namespace berth::engine {

/// The site's entries, the request's, and the site's forced entries, in this order. A name without
/// a value removes the variable if it was not inherited.
std::vector<std::string> environment_of(const RunRequest& request);
/// The same without the site's NVIDIA_VISIBLE_DEVICES.
std::vector<std::string> without_site_selection(const RunRequest& request);

}  // namespace berth::engine
