// SPDX-License-Identifier: Apache-2.0
// Whether an image runs on a node, clause by clause. Pure: an entry of an index with what is
// declared and found about it, against the profile of a node and the way of the driver's files.
#pragma once

#include <string>

#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// "broadwell (x86-64-v3)", "x86-64-v3", "arm64": as reasons call a node's processor.
std::string cpu_name(const node::Profile& node);

/// Where declared and found contradict the stricter counts, and the reason says so.
Verdict judge(const Candidate& candidate, const node::Profile& node, const Job& job,
              Words words = Words::all);

}  // namespace berth::match
