// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/berth/common.hpp"
#include "engine/node/match.hpp"

namespace berth::cli {

/// Shared by the verbs that match entries with nodes.
struct MatchOptions {
  engine::MatchRequest request;
  bool local = false;
  std::optional<std::string> driver_mode;
  std::string format = "table";
};

void add_match_flags(FlagTable& table, MatchOptions& options);

/// Options for one node: looks `reference` up and judges it.
struct MatchFound {
  engine::Offer offer;
  engine::Answer answer;
};
/// Completes the request from flags.  Errors: usage.
Result<void> finish_match_request(MatchOptions& options, const std::string& reference);
Result<MatchFound> find_match(Session& session, MatchOptions options, const std::string& reference);

}  // namespace berth::cli
