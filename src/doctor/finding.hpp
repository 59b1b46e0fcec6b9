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
  problem,         ///< something that was requested will fail
  not_applicable,  ///< this machine has nothing to check
};
std::string_view status_name(Status status);  ///< "ok", "warning", "problem", "not applicable"

/// The result of a check. Cause and remedy are one line each, without a period.
struct Finding {
  Status status = Status::ok;
  std::string cause;                 ///< the observation
  std::string remedy;                ///< a command or an action; empty if there is nothing to do
  std::vector<std::string> details;  ///< the parts that `cause` summarises: paths, nodes
};

/// One question about the machine. Pure: the same facts give the same finding.
struct Check {
  std::string_view id;  ///< "gpu.version-mismatch": stable, described in docs/doctor.md
  Finding (*judge)(const Facts& facts);
};

/// The scope of `berth doctor`.
enum class Scope { everything, gpu };

/// All checks in the order of display. The part of an id before the dot is its group; the checks of
/// a group are consecutive.
std::span<const Check> all_checks();

struct Answer {
  std::string_view id;
  Finding finding;
};
/// The answers of all checks in `scope`.
std::vector<Answer> examine(const Facts& facts, Scope scope);

}  // namespace berth::doctor
