// SPDX-License-Identifier: Apache-2.0
#include "engine/image/images.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/show/container_words.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "cli/berth/show/scan_text.hpp"
#include "cli/core/table.hpp"
#include "cli/template/listing.hpp"
#include "engine/decide/published_facts.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/layer_work.hpp"
#include "engine/image/mounted.hpp"
#include "engine/image/query.hpp"
#include "engine/node/nfd.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

// ---- images -------------------------------------------------------------------------------------

struct ImagesOptions {
  bool all = false;
  bool digests = false;
  bool no_trunc = false;
  bool quiet = false;
  std::vector<engine::Filter> filters;
  std::string format;
};

FlagTable images_flags(ImagesOptions& o) {
  return {
      {"all", 'a', "", "No effect: all images are always listed", &o.all},
      {"digests", 0, "", "Show digests", &o.digests},
      filter_flag(o.filters),
      template_flag(o.format),
      {"no-trunc", 0, "", "Do not truncate ids", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
  };
}

constexpr ListKind kImages{
    .fields = kImageFields,
    .table = "{{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
    .raw =
        "repository: {{.Repository}}\ntag: {{.Tag}}\nimage_id: {{.ID}}\n"
        "created_at: {{.CreatedAt}}\nvirtual_size: {{.Size}}\n",
    .raw_quiet = "image_id: {{.ID}}",
};

constexpr ListKind kImagesWithDigests{
    .fields = kImageFields,
    .table = "{{.Repository}}\t{{.Tag}}\t{{.Digest}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
    .raw =
        "repository: {{.Repository}}\ntag: {{.Tag}}\ndigest: {{.Digest}}\nimage_id: {{.ID}}\n"
        "created_at: {{.CreatedAt}}\nvirtual_size: {{.Size}}\n",
    .raw_quiet = "image_id: {{.ID}}",
};

Result<int> run_images(Session& session, const ImagesOptions& o, Arguments arguments) {
  // -q prints ids, whatever the default format is.
  const std::string format =
      o.quiet ? o.format : format_or_usual(session, o.format, "imagesFormat");
  ListKind kind = o.digests ? kImagesWithDigests : kImages;
  // A column only for users with additional stores.
  const std::string with_stores = std::string(kind.table) + "\t{{.ReadOnly}}";
  if (!session.context.paths.additional_stores.empty()) kind.table = with_stores;
  Listing listing = TRY(Listing::make(kind, {.text = format, .quiet = o.quiet}));
  engine::ImageQuery query;
  if (!arguments.empty()) query.repository = arguments[0];
  query.filters = engine::Filters(o.filters);
  query.now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<ListRow> rows;
  for (const auto& image : TRY(engine::query_images(session.context, query))) {
    rows.push_back(image_row(image, o.no_trunc ? Ids::whole : Ids::shortened));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

// ---- history ------------------------------------------------------------------------------------

constexpr size_t kCreatedByWidth = 45;

struct HistoryOptions {
  bool human = true;
  bool no_trunc = false;
  bool quiet = false;
  std::string format;
};

FlagTable history_flags(HistoryOptions& o) {
  return {
      {"human", 'H', "", "Show readable sizes and dates (--human=false for exact ones)", &o.human},
      {"no-trunc", 0, "", "Do not truncate ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
      template_flag(o.format),
  };
}

constexpr ListField kHistoryFields[] = {
    {"Comment", "COMMENT"},
    {"CreatedAt", "CREATED AT"},
    {"CreatedBy", "CREATED BY"},
    {"CreatedSince", "CREATED"},
    {"ID", "IMAGE"},
    {"Size", "SIZE"},
};

constexpr ListKind kSteps{
    .fields = kHistoryFields,
    .table = "{{.ID}}\t{{.CreatedSince}}\t{{.CreatedBy}}\t{{.Size}}\t{{.Comment}}"};

constexpr ListKind kExactSteps{
    .fields = kHistoryFields,
    .table = "{{.ID}}\t{{.CreatedAt}}\t{{.CreatedBy}}\t{{.Size}}\t{{.Comment}}"};

std::string id_of(const engine::HistoryEntry& entry, const HistoryOptions& o) {
  if (!entry.image_id) return "<missing>";
  return shown_id(*entry.image_id, o.no_trunc ? Ids::whole : Ids::shortened);
}

ListRow row_of(const engine::HistoryEntry& entry, const HistoryOptions& o) {
  // As in docker: tabs of a shell line become one blank.
  std::string by = entry.created_by;
  std::ranges::replace(by, '\t', ' ');
  json::Value time = json_time(entry.created_at);
  return {{entry.comment, time.is_null() ? "N/A" : *time.string(),
           o.no_trunc ? by : truncate(by, kCreatedByWidth), ago(entry.created_at), id_of(entry, o),
           o.human ? human_bytes(entry.size) : std::to_string(entry.size)}};
}

Result<int> run_history(Session& session, const HistoryOptions& o, Arguments arguments) {
  Listing listing =
      TRY(Listing::make(o.human ? kSteps : kExactSteps, {.text = o.format, .quiet = o.quiet}));
  std::vector<ListRow> rows;
  for (const auto& entry : TRY(engine::image_history(session.context, arguments[0]))) {
    rows.push_back(row_of(entry, o));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

// ---- tag ----------------------------------------------------------------------------------------

Result<int> run_tag(Session& session, const NoOptions&, Arguments arguments) {
  TRY(engine::tag_image(session.context, arguments[0], arguments[1]));
  return 0;
}

// ---- scan ---------------------------------------------------------------------------------------

struct ScanOptions {
  std::string format;
  bool attach = false;
  std::optional<std::string> nfd, tag;
  engine::AttachFactsRequest request;
};

FlagTable scan_flags(ScanOptions& o) {
  FlagTable table{
      {"format", 'f', "FORMAT", "Output format: json or a template such as '{{.glibc}}'",
       &o.format},
      {"attach", 0, "", "Attach the result to the image in its registry", &o.attach},
      {"verified",
       0,
       "CONTAINER",
       "With --attach: add how this container of the image ended",
       &o.request.container,
       {},
       Complete::container},
      file_flag("sign-key", 0, "With --attach: sign it with this private key (PEM)",
                &o.request.sign_key),
  };
  table.push_back(
      file_flag("nfd", 0, "Show the requirements in this NFD image compatibility file", &o.nfd));
  table.push_back({"tag", 0, "TAG", "With --nfd: use the rules with this tag", &o.tag});
  add_registry_flags(table, o.request.access);
  return table;
}

Result<int> attach(Session& session, engine::AttachFactsRequest request,
                   const std::string& format) {
  if (!format.empty() && format != "json") {
    return make_error(Kind::usage, "--attach prints text or JSON, and takes no template");
  }
  image::TransferResult result = TRY(engine::attach_facts(session.context, request));
  if (format == "json") {
    json::Object out;
    out.emplace_back("image", result.reference);
    out.emplace_back("digest", result.digest);
    out.emplace_back("status", result.status);
    print_json(session, std::move(out));
  } else if (result.status == "attached") {
    print(session, "attached to " + result.reference + ": " + result.digest + "\n");
  } else {
    print(session, result.reference + " has them already\n");
  }
  return 0;
}

Result<int> show_rules(Session& session, const ScanOptions& o) {
  auto format = TRY(DocumentFormat::make_if_given(o.format));
  bake::NfdRules rules = TRY(engine::rules_of_file(session.context, *o.nfd, o.tag));
  Table table({"AXIS", "VALUE"});
  for (const auto& [axis, value] : rules.words) table.add({axis, value});
  return print_document(session, format, json::to_value(rules), table.text());
}

Result<int> run_scan(Session& session, const ScanOptions& o, Arguments arguments) {
  if (arguments.empty() != o.nfd.has_value()) {
    return make_error(Kind::usage, "expected an image, or --nfd FILE");
  }
  if (o.tag && !o.nfd) return make_error(Kind::usage, "--tag needs --nfd");
  if (o.nfd && o.attach) return make_error(Kind::usage, "--attach needs an image");
  if (o.attach) {
    engine::AttachFactsRequest request = o.request;
    request.reference = arguments[0];
    request.berth_version = berth_version();
    return attach(session, std::move(request), o.format);
  }
  if (o.request.sign_key) {
    return make_error(Kind::usage, "--sign-key needs --attach");
  }
  if (o.request.container) return make_error(Kind::usage, "--verified needs --attach");
  if (o.nfd) return show_rules(session, o);
  auto format = TRY(DocumentFormat::make_if_given(o.format));
  facts::ImageFacts facts = TRY(engine::facts_of_image_named(session.context, arguments[0]));
  return print_document(session, format, json::to_value(facts), scan_text(facts));
}

// ---- image convert ------------------------------------------------------------------------------

struct ImageConvertOptions {
  std::string to;
  bool quiet = false;
};

FlagTable image_convert_flags(ImageConvertOptions& o) {
  return {
      {"quiet", 'q', "", "Print nothing", &o.quiet},
      choice_flag("to", "FORMAT", "Format to convert to: directory or erofs", &o.to,
                  {"directory", "erofs"}),
  };
}

std::string text_of(const image::ConvertReport& report, const std::string& format) {
  std::string text;
  for (const std::string& image : report.shared) {
    text += "Shares converted layers: " + escape_controls(image) + "\n";
  }
  return text + "Converted " + std::to_string(report.layers.size()) + " layers to " + format +
         (report.present > 0 ? ", " + std::to_string(report.present) + " were so already\n" : "\n");
}

Result<int> run_image_convert(Session& session, const ImageConvertOptions& o, Arguments arguments) {
  if (o.to.empty()) {
    return make_error(Kind::usage, "--to FORMAT is required: directory or erofs",
                      "berth image convert --to erofs " + arguments.front());
  }
  WorkDisplay display(session, "Converting", o.quiet);
  auto report = TRY(engine::convert_layers(session.context, o.to, arguments, display.progress()));
  display.finish();
  if (!o.quiet) print(session, text_of(report, o.to));
  return 0;
}

// ---- image mount --------------------------------------------------------------------------------

struct ImageMountOptions {
  std::string format;
};

FlagTable mount_flags(ImageMountOptions& o) {
  return {template_flag(o.format)};
}

constexpr ListField kMountFields[] = {
    {"Directory", "DIRECTORY"}, {"ID", "IMAGE ID"}, {"Image", "IMAGE"}};
constexpr ListKind kMounted{
    .fields = kMountFields,
    .table = "{{.Image}}\t{{.ID}}\t{{.Directory}}",
};

Result<int> mount(Session& session, const ImageMountOptions& o, Arguments arguments) {
  if (arguments.size() == 1) {
    return make_error(Kind::usage, "berth image mount takes an IMAGE and a DIR, or neither",
                      "berth image mount " + arguments[0] + " /mnt");
  }
  if (arguments.size() == 2) {
    print(session, TRY(engine::mount_image(session.context, arguments[0], arguments[1])) + "\n");
    return 0;
  }
  Listing listing = TRY(Listing::make(kMounted, {.text = o.format}));
  std::vector<ListRow> rows;
  for (const engine::MountedImage& image : TRY(engine::list_mounted_images())) {
    rows.push_back({{image.directory, image.image_id, image.image}});
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

Result<int> unmount(Session& session, const NoOptions&, Arguments arguments) {
  return for_each_argument(session, arguments, [](const std::string& directory) {
    return engine::unmount_image(directory);
  });
}

Result<int> unshare(Session& session, const NoOptions&, Arguments arguments) {
  constexpr int kOwnError = 125;
  constexpr int kNotFound = 127;
  constexpr int kNotExecuted = 126;
  auto gone = engine::run_unshared(session.context, arguments);
  if (gone.ok()) return 0;
  session.report.error(gone.error());
  bool command = !arguments.empty() && gone.error().kind != Kind::usage;
  if (!command) return kOwnError;
  return gone.error().kind == Kind::not_found ? kNotFound : kNotExecuted;
}

}  // namespace

const Verb images_verb{
    .text = {.name = "images",
             .arguments = "[REPOSITORY[:TAG]]",
             .summary = "List images",
             .example = "berth images --filter dangling=true -q",
             .complete = Complete::image},
    .arity = {0, 1},
    .command = [] { return make_command(images_flags, run_images); },
};
const Verb history_verb{
    .text = {.name = "history",
             .arguments = "IMAGE",
             .summary = "Show the history of an image",
             .example = "berth history --no-trunc debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .command = [] { return make_command(history_flags, run_history); },
};
const Verb tag_verb{
    .text = {.name = "tag",
             .arguments = "SOURCE TARGET",
             .summary = "Add a name to an image",
             .example = "berth tag debian:12 localhost:5000/debian:12",
             .complete = Complete::image},
    .arity = {2, 2},
    .command = [] { return make_command(no_flags, run_tag); },
};
const Verb scan_verb{
    .text = {.name = "scan",
             .arguments = "IMAGE | --nfd FILE",
             .summary = "Show what an image requires of a machine: CPU, libc, GPU code, driver",
             .example = "berth scan pytorch/pytorch",
             .complete = Complete::image},
    .arity = {0, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(scan_flags, run_scan); },
};
const Verb image_convert_verb{
    .text = {.name = "image convert",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Change the format in which the layers of images are stored",
             .example = "berth image convert --to erofs debian:12",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(image_convert_flags, run_image_convert); },
};
const Verb image_mount_verb{
    .text = {.name = "image mount",
             .arguments = "[IMAGE DIR]",
             .summary = "Mount an image read-only at a directory, or list mounted images",
             .example = "berth image mount debian:12 /mnt",
             .complete = Complete::image},
    .arity = {0, 2},
    .needs = engine::Needs::nothing,  // the caller's own mounts
    .command = [] { return make_command(mount_flags, mount); },
};
const Verb image_unmount_verb{
    .text = {.name = "image unmount",
             .arguments = "DIR [DIR...]",
             .summary = "Unmount images",
             .example = "berth image unmount /mnt"},
    .arity = {1},
    .needs = engine::Needs::nothing,
    .command = [] { return make_command(no_flags, unmount); },
};
const Verb unshare_verb{
    .text = {.name = "unshare",
             .arguments = "[COMMAND] [ARG...]",
             .summary =
                 "Run a command, or a shell, in the user namespace of this user's containers",
             .example = "berth unshare sh -c 'berth image mount debian:12 /mnt; ls /mnt'"},
    .arity = {0},
    .needs = engine::Needs::user_namespace,
    .flags_end = FlagsEnd::at_first_argument,
    .error_status = 125,
    .command = [] { return make_command(no_flags, unshare); },
};

}  // namespace berth::cli
