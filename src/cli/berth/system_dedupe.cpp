// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/work_display.hpp"
#include "engine/image/maintenance.hpp"

namespace berth::cli {
namespace {

struct SystemDedupeOptions {
  bool dry_run = false;
  std::string format = "table";
};

FlagTable system_dedupe_flags(SystemDedupeOptions& o) {
  return {
      {"dry-run", 0, "", "Only show what would be saved", &o.dry_run},
      choice_flag("format", "FORMAT", "Output format: table or json", &o.format, {"table", "json"}),
  };
}

json::Value value_of(const image::DedupeReport& report, bool dry_run) {
  json::Value way;
  if (!report.way.empty()) way = report.way;
  return json::Object{{"dry_run", dry_run},          {"layers", report.layers},
                      {"files", report.files},       {"identical_files", report.identical},
                      {"saved_bytes", report.bytes}, {"way", std::move(way)},
                      {"used_layers", report.used},  {"unrecorded_layers", report.unrecorded}};
}

std::string text_of(const image::DedupeReport& report, bool dry_run) {
  std::string text;
  if (report.unrecorded > 0) {
    text += std::to_string(report.unrecorded) +
            " layers were left out: there is no record of their files\n";
  }
  if (report.used > 0) {
    text += std::to_string(report.used) +
            " layers stay as they are: containers use them, or they are mounted\n";
  }
  text += "Looked at " + std::to_string(report.files) + " files of " +
          std::to_string(report.layers) + " layers: ";
  if (report.identical == 0) return text + "nothing to save\n";
  return text + std::to_string(report.identical) + (dry_run ? " would share " : " share ") +
         (report.way == "blocks" ? "their blocks" : "a file") + " with another, " +
         human_bytes(report.bytes) + (dry_run ? " to save\n" : " saved\n");
}

Result<int> run_system_dedupe(Session& session, const SystemDedupeOptions& o, Arguments) {
  WorkDisplay display(session, "Comparing", o.format == "json");
  auto trial = o.dry_run ? engine::Trial::yes : engine::Trial::no;
  auto report = TRY(engine::dedupe_layers(session.context, trial, display.progress()));
  display.finish();
  if (o.format == "json") {
    print_json(session, value_of(report, o.dry_run));
  } else {
    print(session, text_of(report, o.dry_run));
  }
  return 0;
}

}  // namespace

const Verb system_dedupe_verb{
    .text = {.name = "system dedupe",
             .summary = "Store identical files of layers only once",
             .example = "berth system dedupe --dry-run"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_dedupe_flags, run_system_dedupe); },
};

}  // namespace berth::cli
