// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/template/listing.hpp"
#include "engine/image/mounted.hpp"

namespace berth::cli {
namespace {

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
