// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "complaint/complaint.hpp"
#include "engine/system/doctor.hpp"
#include "json/value.hpp"

namespace berth::cli {

struct DoctorLook {
  size_t columns = 0;    ///< lines are folded there; 0: never
  bool colour = false;   ///< the status in colour
  bool quiet = false;    ///< problems and warnings alone
  bool details = false;  ///< also where there is only one
};

/// The answers for people: a paragraph for each group, one row for each check with what to try
/// below it, and the sum at the end. What does not apply is counted only. Pure.
std::string doctor_text(const std::vector<doctor::Answer>& answers, const DoctorLook& look);

/// What was found in a log, likewise; each with the line that says it. Pure.
std::string log_text(const std::vector<complaint::Found>& found, const DoctorLook& look);

/// The same as answers of checks: what a program dies of is a problem, what it goes on with a
/// warning.
std::vector<doctor::Answer> log_answers(const std::vector<complaint::Found>& found);

/// {"checks": [{"id", "status", "cause", "remedy", "details"}], "problems": 1, "warnings": 0}
json::Value doctor_json(const std::vector<doctor::Answer>& answers);

size_t count_of(const std::vector<doctor::Answer>& answers, doctor::Status status);

}  // namespace berth::cli
