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
  bool details = false;  ///< show details even if there is only one
};

/// The look for the standard output of the session.
DoctorLook look_of(const Session& session, bool quiet);

/// The answers for people: a paragraph for each group, with a row for each check and its remedy
/// below, and the totals at the end. Checks that do not apply are only counted. Pure.
std::string doctor_text(const std::vector<doctor::Answer>& answers, const DoctorLook& look);

/// Like doctor_text(), for the known errors found in a log, each with its line. Pure.
std::string log_text(const std::vector<known_error::Found>& found, const DoctorLook& look);

/// Converts known errors to answers of checks: a known error that can end a program is a problem,
/// any other a warning.
std::vector<doctor::Answer> log_answers(const std::vector<known_error::Found>& found);

/// {"checks": [{"id", "status", "cause", "remedy", "details"}], "problems": 1, "warnings": 0}
json::Value doctor_json(const std::vector<doctor::Answer>& answers);

size_t count_of(const std::vector<doctor::Answer>& answers, doctor::Status status);

}  // namespace berth::cli
