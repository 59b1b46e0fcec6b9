// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/berth/common.hpp"
#include "engine/node/match.hpp"

namespace berth::cli {

/// The flags of the verbs that ask which entry of an image index runs on a node.
struct MatchOptions {
  engine::MatchRequest request;
  bool local = false;
  std::optional<std::string> driver_mode;
  std::string format = "table";
};

FlagTable match_flags(MatchOptions& options);

/// Completes the request from flags.  Errors: usage.
Result<void> finish_match_request(MatchOptions& options, const std::string& reference);

struct MatchFound {
  engine::Offer offer;
  engine::Answer answer;
};
/// Looks up the index of `reference`, and judges its entries for one node.
Result<MatchFound> find_match(Session& session, MatchOptions options, const std::string& reference);
/// Prints what find_match() finds. Returns the exit status for it.
Result<int> show_match(Session& session, const MatchOptions& options, const std::string& reference);

}  // namespace berth::cli
