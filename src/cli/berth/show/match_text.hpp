// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/node/match.hpp"
#include "json/value.hpp"

/// The output of `match`, `why`, `why-not` and `what-if`. Pure.
namespace berth::cli {

/// The exit statuses, in addition to 0, when the question was answered. They depend on the outcome
/// for the chosen entry of the index.
inline constexpr int kRunsBut = 10, kNotKnown = 11, kNothingRuns = 12;
int match_status(const match::Ranking& ranking);

/// A line for each entry, with '*' before the chosen one.
std::string match_table(const engine::Answer& answer);
/// A line for each node: its entry, and the reason against a better one.
std::string fleet_table(const std::vector<engine::Answer>& answers);
/// Every clause of one entry.
std::string entry_text(const match::Judged& entry, bool taken);

json::Value match_json(const engine::Offer& offer, const engine::Answer& answer);

}  // namespace berth::cli
