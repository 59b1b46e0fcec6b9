// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"
#include "engine/files/save_squashfs.hpp"

namespace berth::cli {
namespace {

// ---- save ---------------------------------------------------------------------------------------

struct SaveOptions {
  std::string output;
  std::string format = "archive";
  image::RegistryAccess access;
};

FlagTable save_flags(SaveOptions& o) {
  FlagTable table = {
      file_flag("output", 'o', "Write to FILE instead of stdout", &o.output),
      choice_flag("format", "FORMAT", "archive (for docker and podman), oci (a directory) or sqsh",
                  &o.format,
                  {"archive", "docker-archive", "oci", "oci-archive", "oci-dir", "sqsh"}),
  };
  add_registry_flags(table, o.access);
  return table;
}

Result<int> save_squashfs(Session& session, const SaveOptions& o, const Arguments& arguments) {
  if (o.output.empty()) {
    return make_error(Kind::usage, "a squashfs file cannot be written to stdout",
                      "berth save --format sqsh --output FILE IMAGE");
  }
  if (arguments.size() != 1) {
    return make_error(Kind::usage, "a squashfs file holds only one image");
  }
  TRY(engine::save_squashfs(session.context, arguments[0], o.output));
  return 0;
}

Result<int> run_save(Session& session, const SaveOptions& o, Arguments arguments) {
  if (o.format == "sqsh") return save_squashfs(session, o, arguments);
  image::SaveRequest request;
  request.references = std::move(arguments);
  request.output = o.output;
  // A single tar is both a docker-archive and an oci-archive.
  request.format = o.format == "oci" || o.format == "oci-dir" ? "oci" : "archive";
  request.access = o.access;
  if (o.output.empty()) {
    if (session.terminal.is_terminal(Stream::out)) {
      return make_error(Kind::usage, "cannot write an archive to a terminal",
                        "berth save --output FILE IMAGE");
    }
    if (request.format == "oci") {
      return make_error(Kind::usage, "a directory cannot be written to stdout",
                        "berth save --format oci --output DIR IMAGE");
    }
    request.output = "/dev/fd/1";
  }
  TRY(transfer_shown(session, std::move(request), Stream::err, Direction::push, false));
  return 0;
}

// ---- load ---------------------------------------------------------------------------------------

struct LoadOptions {
  image::LoadRequest request;
};

FlagTable load_flags(LoadOptions& o) {
  return {
      file_flag("input", 'i', "Read an archive or an OCI layout directory instead of stdin",
                &o.request.input),
      {"quiet", 'q', "", "Do not show progress", &o.request.quiet},
      {"platform", 0, "OS/ARCH", "Platform to use instead of this machine's",
       read_platform(o.request.platform)},
  };
}

Result<int> run_load(Session& session, const LoadOptions& o, Arguments) {
  image::LoadRequest request = o.request;
  if (request.input.empty()) {
    if (session.terminal.input_is_terminal()) {
      return make_error(Kind::usage, "no archive on stdin", "berth load --input FILE");
    }
    request.input = "/dev/fd/0";
  }
  image::TransferResult result =
      TRY(transfer_shown(session, request, Stream::err, Direction::pull, request.quiet));
  for (const auto& line : result.loaded) print(session, line + "\n");
  return 0;
}

// ---- import -------------------------------------------------------------------------------------

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

const Verb save_verb{
    .text = {.name = "save",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Save images to an archive",
             .example = "berth save --output tools.tar localhost:5000/tools:1",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(save_flags, run_save); },
};
const Verb load_verb{
    .text = {.name = "load",
             .summary = "Load images from an archive",
             .example = "berth load --input tools.tar"},
    .needs = engine::Needs::user_namespace,
    .arguments_elsewhere = load_elsewhere,
    .command = [] { return make_command(load_flags, run_load); },
};
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
