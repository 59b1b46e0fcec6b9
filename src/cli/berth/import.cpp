// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"

namespace berth::cli {
namespace {

struct ImportOptions {
  image::ImportRequest request;
};

FlagTable import_flags(ImportOptions& o) {
  return {
      {"change", 'c', "INSTRUCTION",
       "Apply a Dockerfile instruction, such as CMD, ENTRYPOINT or ENV", &o.request.changes},
      {"message", 'm', "TEXT", "Commit message", &o.request.message},
      {"platform", 0, "OS/ARCH", "Platform of the files", read_platform(o.request.platform)},
  };
}

Result<int> run_import(Session& session, const ImportOptions& o, Arguments arguments) {
  image::ImportRequest request = o.request;
  request.source = arguments[0] == "-" ? "/dev/fd/0" : arguments[0];
  if (arguments.size() > 1) request.reference = arguments[1];
  if (arguments[0] == "-" && session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no archive on stdin", "berth import FILE NAME");
  }
  image::TransferResult imported =
      TRY(transfer_shown(session, std::move(request), Stream::err, Direction::pull, false));
  print(session, imported.image_id + "\n");
  return 0;
}

constexpr std::string_view kFromRegistry = "import reads only local files";
constexpr std::string_view kPullAndSave =
    "berth pull IMAGE && berth save --format sqsh --output FILE.sqsh IMAGE";
constexpr Elsewhere kImportElsewhere[] = {
    {"a", kPullAndSave, kFromRegistry}, {"arch", kPullAndSave, kFromRegistry},
    {"o", kPullAndSave, kFromRegistry}, {"output", kPullAndSave, kFromRegistry},
    {"x", kPullAndSave, kFromRegistry},
};

}  // namespace

const Verb import_verb{
    .text = {.name = "import",
             .arguments = "DIR|TAR|SQUASHFS|SIF|- [NAME[:TAG]]",
             .summary = "Create an image from a directory, tar archive, squashfs or SIF file",
             .example = "berth import --change 'CMD [\"bash\"]' rootfs.tar.gz debian:mine",
             .complete = Complete::file},
    .arity = {1, 2},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kImportElsewhere,
    .arguments_elsewhere = import_elsewhere,
    .command = [] { return make_command(import_flags, run_import); },
};

}  // namespace berth::cli
