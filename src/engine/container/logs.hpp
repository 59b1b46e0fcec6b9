// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

struct LogOptions {
  bool follow = false;
  std::optional<uint64_t> tail;     ///< only the last N entries
  std::optional<int64_t> since_ns;  ///< since 1970; only entries at or after this time
  std::optional<int64_t> until_ns;  ///< only entries at or before this time; ends `follow`
};
enum class Stream { out, error };
/// One piece of output, in the order of writing.
struct LogPiece {
  Stream stream = Stream::out;
  std::string_view text;
  int64_t time_ns = 0;  ///< since 1970

  /// RFC 3339 with nine digits after the seconds.
  std::string time() const;
};
/// Calls `sink` for the container's output; with `follow` until the container ends.
/// A piece is a line, or a part of a line that is longer than 16 KiB, as with docker.
/// Errors: not_found, unsupported (it ran in the foreground, or with --log-driver none), io.
Result<void> container_logs(const Context& context, std::string_view reference,
                            const LogOptions& options,
                            const std::function<void(const LogPiece&)>& sink);

}  // namespace berth::engine
