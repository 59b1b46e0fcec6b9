// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/doctor_text.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

using doctor::Answer;
using doctor::Status;

constexpr size_t kStatusWidth = 9;  // "warning" and two blanks
constexpr size_t kLeastText = 24;   // a narrower terminal wraps the lines itself
constexpr size_t kMostDetails = 30;

std::string_view group_of(std::string_view id) {
  return id.substr(0, id.find('.'));
}

std::string_view name_of(std::string_view id) {
  return id.substr(id.find('.') + 1);
}

std::string status_cell(Status status, bool colour) {
  std::string cell = pad_right(doctor::status_name(status), kStatusWidth);
  if (!colour) return cell;
  const char* paint = status == Status::ok        ? "\x1b[32m"
                      : status == Status::warning ? "\x1b[33m"
                      : status == Status::problem ? "\x1b[1;31m"
                                                  : "\x1b[2m";
  return paint + cell + "\x1b[0m";
}

class Writer {
 public:
  Writer(const std::vector<Answer>& answers, const DoctorLook& look) : look_(look) {
    for (const Answer& answer : answers) {
      if (is_shown(answer)) name_width_ = std::max(name_width_, name_of(answer.id).size());
    }
    indent_ = kStatusWidth + name_width_ + 2;
    bool room = look.columns > indent_ + 2 + kLeastText;
    text_columns_ = room ? look.columns - indent_ - 2 : 0;
  }

  bool is_shown(const Answer& answer) const {
    Status status = answer.finding.status;
    return status != Status::not_applicable && (!look_.quiet || status != Status::ok);
  }

  void write(const Answer& answer) {
    if (group_of(answer.id) != group_) {
      group_ = group_of(answer.id);
      if (!text.empty()) text += "\n";
      text += std::string(group_) + "\n";
    }
    const doctor::Finding& finding = answer.finding;
    std::string head = "  " + status_cell(finding.status, look_.colour) +
                       pad_right(name_of(answer.id), name_width_ + 2);
    paragraph(head, escape_controls(finding.cause));
    if (finding.status == Status::ok) return;
    if (finding.details.size() > (look_.details ? 0 : 1)) details(finding.details);
    if (!finding.remedy.empty()) paragraph(blanks(), "try: " + escape_controls(finding.remedy));
  }

  std::string text;

 private:
  std::string blanks() const { return std::string(indent_ + 2, ' '); }

  void paragraph(std::string head, std::string_view content) {
    for (const std::string& line : fold(content, text_columns_)) {
      text += head + line + "\n";
      head = blanks();
    }
  }

  void details(const std::vector<std::string>& lines) {
    size_t shown = std::min(lines.size(), kMostDetails);
    for (size_t i = 0; i < shown; ++i) text += blanks() + "- " + escape_controls(lines[i]) + "\n";
    if (lines.size() > shown) {
      text += blanks() + "- and " + std::to_string(lines.size() - shown) + " more\n";
    }
  }

  const DoctorLook& look_;
  std::string_view group_;
  size_t name_width_ = 0;
  size_t indent_ = 0;        ///< columns before the text, without the first two
  size_t text_columns_ = 0;  ///< 0: not folded
};

std::string part_of(const std::vector<Answer>& answers, Status status, const char* one,
                    const char* many) {
  size_t count = count_of(answers, status);
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string bad_ones(const std::vector<Answer>& answers) {
  return part_of(answers, Status::problem, "problem", "problems") + ", " +
         part_of(answers, Status::warning, "warning", "warnings");
}

std::string sum_of(const std::vector<Answer>& answers) {
  return bad_ones(answers) + ", " + part_of(answers, Status::ok, "ok", "ok") + ", " +
         part_of(answers, Status::not_applicable, "does not apply", "do not apply");
}

}  // namespace

DoctorLook look_of(const Session& session, bool quiet) {
  size_t columns = columns_of(session);
  bool colour = columns > 0 && !session.context.environment.get_filled("NO_COLOR");
  return {.columns = columns, .colour = colour, .quiet = quiet};
}

size_t count_of(const std::vector<Answer>& answers, Status status) {
  return static_cast<size_t>(std::ranges::count_if(
      answers, [&](const Answer& answer) { return answer.finding.status == status; }));
}

std::string doctor_text(const std::vector<Answer>& answers, const DoctorLook& look) {
  Writer writer(answers, look);
  for (const Answer& answer : answers) {
    if (writer.is_shown(answer)) writer.write(answer);
  }
  // If no check applies, the first one says why.
  bool nothing = !answers.empty() && count_of(answers, Status::not_applicable) == answers.size();
  if (nothing) writer.text = escape_controls(answers.front().finding.cause) + "\n";
  if (!writer.text.empty()) writer.text += "\n";
  return writer.text + sum_of(answers) + "\n";
}

std::vector<Answer> log_answers(const std::vector<known_error::Found>& found) {
  std::vector<Answer> answers;
  for (const known_error::Found& one : found) {
    Status status = one.level == known_error::Level::sign ? Status::warning : Status::problem;
    answers.push_back({one.id, {status, one.why, one.remedy, {one.text}}});
  }
  return answers;
}

std::string log_text(const std::vector<known_error::Found>& found, const DoctorLook& look) {
  if (found.empty()) return "no known message\n";
  std::vector<Answer> answers = log_answers(found);
  DoctorLook with_lines = look;
  with_lines.details = true;
  Writer writer(answers, with_lines);
  for (const Answer& answer : answers) writer.write(answer);
  return writer.text + "\n" + bad_ones(answers) + "\n";
}

json::Value doctor_json(const std::vector<Answer>& answers) {
  json::Array checks;
  for (const Answer& answer : answers) {
    const doctor::Finding& finding = answer.finding;
    json::Value remedy;
    if (!finding.remedy.empty()) remedy = finding.remedy;
    checks.push_back(
        json::Object{{"id", answer.id},
                     {"status", doctor::status_name(finding.status)},
                     {"cause", finding.cause},
                     {"remedy", std::move(remedy)},
                     {"details", json::Array(finding.details.begin(), finding.details.end())}});
  }
  return json::Object{{"checks", std::move(checks)},
                      {"problems", uint64_t{count_of(answers, Status::problem)}},
                      {"warnings", uint64_t{count_of(answers, Status::warning)}}};
}

}  // namespace berth::cli
