// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::gpu {

/// What the user asked for with --gpus.
struct Request {
  enum class Want { none, all, count, devices };
  Want want = Want::none;
  uint32_t count = 0;                     ///< Want::count: ≥ 1
  std::vector<std::string> devices;       ///< Want::devices: "0", "1:0", "GPU-…", "MIG-…"
  std::vector<std::string> capabilities;  ///< empty: the image's, else compute,utility
};

/// Every capability that a driver file can belong to, in the order of our messages.
const std::vector<std::string_view>& known_capabilities();

/// Reads the text of --gpus as docker does (one CSV record with quotes): "all", "2", "none",
/// "device=0,2", "\"device=0,2\",capabilities=compute", "count=2", "device=GPU-8f2b". Beyond
/// docker, a list needs no quotes: bare words after device= or capabilities= continue it. Errors:
/// usage (an unknown key or capability, with the nearest; a key twice; count and device).
Result<Request> parse_request(std::string_view text);

}  // namespace berth::gpu
