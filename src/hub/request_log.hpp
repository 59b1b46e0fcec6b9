// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hub/config/config.hpp"
#include "hub/reply.hpp"
#include "hub/server.hpp"

namespace berth::hub {

/// One line, with its newline, about a request that ended at `seconds` since 1970. It contains the
/// verified account, but neither the Authorization header nor the query. As text:
///   2026-11-22T15:00:00Z 10.0.0.7 alice k80 GET /v2/app/manifests/1.0 200 1234 0.012 sha256:… -
std::string request_line(LogForm form, const Asked& asked, const Note& note, const Ended& ended,
                         int64_t seconds);

}  // namespace berth::hub
