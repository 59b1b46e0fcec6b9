// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/berth/request_options.hpp"
#include "cli/berth/verb.hpp"

namespace berth::cli {

/// The flags of namespaces and networks, for add_request_flags().
FlagTable namespace_flags(RequestOptions& options);

}  // namespace berth::cli
