// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/node/match.hpp"
#include "json/value.hpp"

/// What `match`, `why`, `why-not` and `what-if` print. Pure.
namespace berth::cli {

/// Exit statuses of a question that was answered, by what the entry that is taken comes to.
inline constexpr int kRunsBut = 10, kNotKnown = 11, kNothingRuns = 12;
int match_status(const match::Ranking& ranking);

/// A line for each entry, with '*' before the one that is taken.
std::string match_table(const engine::Answer& answer);
/// A line for each node: what it takes, and why not better.
std::string fleet_table(const std::vector<engine::Answer>& answers);
/// Every clause of one entry.
std::string entry_text(const match::Judged& entry, bool taken);

json::Value match_json(const engine::Offer& offer, const engine::Answer& answer);

}  // namespace berth::cli
