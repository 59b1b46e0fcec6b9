// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/template/listing.hpp"
#include "engine/image/maintenance.hpp"
#include "engine/image/mounted.hpp"
#include "engine/node/match.hpp"
#include "json/value.hpp"

namespace berth::cli {
namespace {

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

// ---- manifest inspect ---------------------------------------------------------------------------

struct ManifestOptions {
  image::RegistryAccess access;
  bool insecure = false;
  bool raw = false;
};

FlagTable manifest_flags(ManifestOptions& o) {
  FlagTable table{
      {"insecure", 0, "", "Allow HTTP or an unverified certificate for IMAGE's registry",
       &o.insecure},
      {"raw", 0, "", "Print the manifest exactly as the registry has it", &o.raw},
  };
  add_registry_flags(table, o.access);
  return table;
}

Result<int> inspect_manifest(Session& session, const ManifestOptions& o, Arguments arguments) {
  image::TransferResult found =
      TRY(engine::look_up_document(session.context, arguments[0], o.access, o.insecure));
  if (o.raw) {
    print(session, found.document);
  } else {
    print_json(session,
               TRY(json::parse(found.document, "the document of " + quote(found.reference))));
  }
  return 0;
}

/// Flags of docker.
constexpr Elsewhere kManifestElsewhere[] = {
    {"v", "berth match IMAGE, which shows each entry", "only one document is shown"},
    {"verbose", "berth match IMAGE, which shows each entry", "only one document is shown"},
};

}  // namespace

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
    .needs = engine::Needs::nothing,  // the mounts belong to the caller
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
const Verb manifest_inspect_verb{
    .text = {.name = "manifest inspect",
             .arguments = "IMAGE",
             .summary = "Show the manifest or index of an image in a registry",
             .example = "berth manifest inspect debian:12"},
    .arity = {1, 1},
    .elsewhere = kManifestElsewhere,
    .command = [] { return make_command(manifest_flags, inspect_manifest); },
};

}  // namespace berth::cli
