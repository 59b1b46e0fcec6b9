// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "engine/image/maintenance.hpp"

namespace berth::cli {
namespace {

// ---- system df ----------------------------------------------------------------------------------

struct SystemDfOptions {
  std::string format;
  bool verbose = false;
};

FlagTable system_df_flags(SystemDfOptions& o) {
  return {
      template_flag(o.format),
      {"verbose", 'v', "", "Show each image, container and volume", &o.verbose},
  };
}

constexpr ListField kUsageFields[] = {{"Active", "ACTIVE"},
                                      {"Reclaimable", "RECLAIMABLE"},
                                      {"Size", "SIZE"},
                                      {"TotalCount", "TOTAL"},
                                      {"Type", "TYPE"}};
constexpr ListKind kUsage{
    .fields = kUsageFields,
    .table = "{{.Type}}\t{{.TotalCount}}\t{{.Active}}\t{{.Size}}\t{{.Reclaimable}}",
    .quiet = "{{.Type}}",
};

ListRow row_of(std::string_view type, const engine::KindUsage& usage) {
  std::string reclaimable = human_bytes(usage.reclaimable);
  if (usage.bytes > 0) {
    reclaimable += " (" + std::to_string(usage.reclaimable * 100 / usage.bytes) + "%)";
  }
  return {{std::to_string(usage.active), reclaimable, human_bytes(usage.bytes),
           std::to_string(usage.total), std::string(type)}};
}

constexpr auto kEachImageFields = [] {
  std::array<ListField, std::size(kImageFields) + 1> fields{};
  fields[0] = {"BlobSize", "BLOB SIZE"};  // the first in the order of names
  std::ranges::copy(kImageFields, fields.begin() + 1);
  return fields;
}();
constexpr ListKind kEachImage{
    .fields = kEachImageFields,
    .table =
        "{{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}\t{{.SharedSize}}\t"
        "{{.UniqueSize}}\t{{.BlobSize}}\t{{.Containers}}",
};

ListRow each_image_row(const engine::ImageUsage& image, Ids ids) {
  ListRow row = image_row(image, ids);
  row.values.insert(row.values.begin(), human_bytes(image.blob_bytes));
  return row;
}

std::string images_title(const engine::DiskUsage& usage) {
  if (usage.linked_bytes == 0) return "Images space usage:\n\n";
  return "Images space usage, without " + human_bytes(usage.linked_bytes) +
         " of identical files:\n\n";
}
constexpr ListKind kEachContainer{
    .fields = kContainerFields,
    .table =
        "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.LocalVolumes}}\t{{.Size}}\t{{.RunningFor}}\t"
        "{{.Status}}\t{{.Names}}",
};
constexpr ListKind kEachVolume{
    .fields = kVolumeFields,
    .table = "{{.Name}}\t{{.Links}}\t{{.Size}}",
};
constexpr ListField kCacheFields[] = {{"CacheType", "CACHE TYPE"}, {"CreatedSince", "CREATED"},
                                      {"ID", "CACHE ID"},          {"LastUsedSince", "LAST USED"},
                                      {"Shared", "SHARED"},        {"Size", "SIZE"},
                                      {"UsageCount", "USAGE"}};
constexpr ListKind kEachCache{
    .fields = kCacheFields,
    .table =
        "{{.ID}}\t{{.CacheType}}\t{{.Size}}\t{{.CreatedSince}}\t{{.LastUsedSince}}\t"
        "{{.UsageCount}}\t{{.Shared}}",
};

struct Part {
  std::string_view name;  ///< name of the member in JSON
  std::string title;      ///< printed above the table
  const ListKind& kind;
  std::vector<ListRow> rows;
};

std::vector<Part> parts_of(const Session& session, const engine::DiskUsage& usage, Text text) {
  std::vector<Part> parts = {
      {"Images", images_title(usage), kEachImage, {}},
      {"Containers", "\nContainers space usage:\n\n", kEachContainer, {}},
      {"Volumes", "\nLocal Volumes space usage:\n\n", kEachVolume, {}},
      {"BuildCache",
       "\nBuild cache usage: " + human_bytes(usage.build_cache.bytes) + "\n\n",
       kEachCache,
       {}}};
  const Now now = std::chrono::system_clock::now();
  const Ids ids = text == Text::whole ? Ids::whole : Ids::shortened;
  for (const auto& image : usage.each_image) parts[0].rows.push_back(each_image_row(image, ids));
  for (const auto& container : usage.each_container) {
    parts[1].rows.push_back(container_row(container, text, now));
  }
  for (const auto& volume : usage.each_volume) {
    parts[2].rows.push_back(volume_row(session, volume));
  }
  return parts;
}

/// The objects of each kind: four tables, or one JSON document.
Result<std::string> each(const Session& session, const SystemDfOptions& o) {
  const bool tables = o.format.empty() || o.format == "table";
  std::optional<DocumentFormat> format;
  if (!tables) format = TRY(DocumentFormat::make(o.format));
  engine::DiskUsage usage = TRY(engine::disk_usage(session.context));
  std::string text;
  json::Object document;
  for (const Part& part : parts_of(session, usage, tables ? Text::shortened : Text::whole)) {
    if (tables) {
      Listing listing = TRY(Listing::make(part.kind, {}));
      std::string table = TRY(listing.text(part.rows));
      text += part.title + table;
      continue;
    }
    json::Array rows;
    for (const ListRow& row : part.rows) rows.push_back(to_value(part.kind, row));
    document.emplace_back(part.name, std::move(rows));
  }
  if (tables) return text;
  document.emplace_back("LinkedSize", human_bytes(usage.linked_bytes));
  text = TRY(format->text(document));
  return text + "\n";
}

Result<int> run_system_df(Session& session, const SystemDfOptions& o, Arguments) {
  if (o.verbose) {
    print(session, TRY(each(session, o)));
    return 0;
  }
  Listing listing = TRY(Listing::make(kUsage, {.text = o.format}));
  engine::DiskUsage usage = TRY(engine::disk_usage(session.context));
  print(session,
        TRY(listing.text({row_of("Images", usage.images), row_of("Containers", usage.containers),
                          row_of("Local Volumes", usage.volumes),
                          row_of("Build Cache", usage.build_cache)})));
  return 0;
}

// ---- system check -------------------------------------------------------------------------------

constexpr int kDamagedStatus = 1;

struct SystemCheckOptions {
  bool repair = false;
  std::string format = "table";
};

FlagTable system_check_flags(SystemCheckOptions& o) {
  return {
      format_flag(o.format),
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

// ---- system dedupe ------------------------------------------------------------------------------

struct SystemDedupeOptions {
  bool dry_run = false;
  std::string format = "table";
};

FlagTable system_dedupe_flags(SystemDedupeOptions& o) {
  return {
      {"dry-run", 0, "", "Only show what would be saved", &o.dry_run},
      format_flag(o.format),
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

const Verb system_df_verb{
    .text = {.name = "system df",
             .summary = "Show the disk space that images, containers and volumes use",
             .example = "berth system df --format json"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_df_flags, run_system_df); },
};
const Verb system_check_verb{
    .text = {.name = "system check",
             .summary = "Check that the content of the store is intact",
             .example = "berth system check --repair"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_check_flags, run_system_check); },
};
const Verb system_dedupe_verb{
    .text = {.name = "system dedupe",
             .summary = "Store identical files of layers only once",
             .example = "berth system dedupe --dry-run"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(system_dedupe_flags, run_system_dedupe); },
};

}  // namespace berth::cli
