// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.hpp"

namespace berth::doctor {

enum class Status {
  ok,
  warning,         ///< works, but not in every case or not for long
  problem,         ///< something that was asked for will fail
  not_applicable,  ///< there is nothing here that it could be about
};
std::string_view status_name(Status status);  ///< "ok", "warning", "problem", "not applicable"

/// What a check says. Cause and remedy are one line each, without a period.
struct Finding {
  Status status = Status::ok;
  std::string cause;   ///< what was seen
  std::string remedy;  ///< a command or a thing to do; empty when there is nothing to do
  std::vector<std::string> details;  ///< what `cause` sums up: paths, nodes
};

/// One question about the machine. Pure: the same facts give the same finding.
struct Check {
  std::string_view id;  ///< "gpu.version-mismatch": stable, docs/doctor.md tells about each
  Finding (*judge)(const Facts& facts);
};

/// What `berth doctor` looks at.
enum class Scope { everything, gpu };

/// All checks in the order in which they are shown; those of a group stand together, and what
/// stands before the dot of an id is its group.
std::span<const Check> all_checks();

struct Answer {
  std::string_view id;
  Finding finding;
};
/// The answers of all checks in `scope`.
std::vector<Answer> examine(const Facts& facts, Scope scope);

}  // namespace berth::doctor
