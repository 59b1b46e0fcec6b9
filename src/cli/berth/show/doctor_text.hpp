// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "engine/system/doctor.hpp"
#include "json/value.hpp"
#include "known_error/find.hpp"

namespace berth::cli {

struct DoctorLook {
  size_t columns = 0;    ///< width for folding lines; 0: never
  bool colour = false;   ///< the status in colour
  bool quiet = false;    ///< only problems and warnings
  bool details = false;  ///< even if there is only one
};

/// The look on the session's standard output.
DoctorLook look_of(const Session& session, bool quiet);

/// The answers for people: a paragraph for each group, one row for each check with its remedy
/// below, and the totals at the end. Inapplicable checks are only counted. Pure.
std::string doctor_text(const std::vector<doctor::Answer>& answers, const DoctorLook& look);

/// Known errors found in a log, likewise; each with its line. Pure.
std::string log_text(const std::vector<known_error::Found>& found, const DoctorLook& look);

/// The same as answers of checks: a fatal known error is a problem, another one a warning.
std::vector<doctor::Answer> log_answers(const std::vector<known_error::Found>& found);

/// {"checks": [{"id", "status", "cause", "remedy", "details"}], "problems": 1, "warnings": 0}
json::Value doctor_json(const std::vector<doctor::Answer>& answers);

size_t count_of(const std::vector<doctor::Answer>& answers, doctor::Status status);

}  // namespace berth::cli
