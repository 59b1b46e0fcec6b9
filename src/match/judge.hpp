// SPDX-License-Identifier: Apache-2.0
// Judges whether an image runs on a node, clause by clause. Pure. The inputs are an entry of an
// index with its declared and found facts, the profile of a node, and the source of the driver's
// files.
#pragma once

#include <string>

#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// "broadwell (x86-64-v3)", "x86-64-v3", "arm64": a node's processor, for reasons.
std::string cpu_name(const node::Profile& node);

/// If declared and found facts contradict each other, the stricter fact counts, and the reason says
/// so.
Verdict judge(const Candidate& candidate, const node::Profile& node, const Job& job,
              Words words = Words::all);

}  // namespace berth::match
