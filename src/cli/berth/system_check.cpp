// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/image/maintenance.hpp"

namespace berth::cli {
namespace {

constexpr int kDamagedStatus = 1;

struct SystemCheckOptions {
  bool repair = false;
  std::string format = "table";
};

FlagTable system_check_flags(SystemCheckOptions& o) {
  return {
      choice_flag("format", "FORMAT", "Output format: table or json", &o.format, {"table", "json"}),
      {"repair", 0, "", "Remove damaged content that no container uses; pull nothing", &o.repair},
  };
}

json::Value value_of(const image::CheckReport& report) {
  json::Array findings;
  for (const auto& finding : report.findings) {
    json::Value done;
    if (!finding.done.empty()) done = finding.done;
    findings.emplace_back(json::Object{{"kind", finding.kind},
                                       {"object", finding.object},
                                       {"text", finding.text},
                                       {"images", json_strings(finding.images)},
                                       {"damage", finding.damage},
                                       {"done", std::move(done)}});
  }
  return json::Object{{"findings", std::move(findings)},
                      {"damaged", report.damaged},
                      {"records", report.records},
                      {"blobs", report.blobs},
                      {"layers", report.layers},
                      {"files", report.files},
                      {"bytes", report.bytes}};
}

std::string line_of(const image::CheckFinding& finding) {
  std::string line = finding.kind + " " + finding.object + ": " + finding.text;
  if (!finding.images.empty()) line += " (" + join(finding.images, ", ") + ")";
  if (!finding.done.empty()) line += ": " + finding.done;
  return escape_controls(line) + "\n";
}

std::string summary_of(const image::CheckReport& report) {
  return "Checked " + std::to_string(report.records) + " names, " + std::to_string(report.blobs) +
         " blobs, " + std::to_string(report.layers) + " layers with " +
         std::to_string(report.files) + " files, " + human_bytes(report.bytes) + ": " +
         (report.damaged == 0 ? "no damage" : std::to_string(report.damaged) + " damaged") + "\n";
}

Result<int> run_system_check(Session& session, const SystemCheckOptions& o, Arguments) {
  auto repair = o.repair ? engine::Repair::yes : engine::Repair::no;
  auto report = TRY(engine::check_store(session.context, repair));
  if (o.format == "json") {
    print_json(session, value_of(report));
  } else {
    std::string text;
    for (const auto& finding : report.findings) text += line_of(finding);
    print(session, text + summary_of(report));
  }
  return report.damaged == 0 ? 0 : kDamagedStatus;
}

}  // namespace

const Verb system_check_verb{
    .text = {.name = "system check",
             .summary = "Check that the content of the store is intact",
             .example = "berth system check --repair"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_check_flags, run_system_check); },
};

}  // namespace berth::cli
