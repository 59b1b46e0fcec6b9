// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/files/save_squashfs.hpp"

namespace berth::cli {
namespace {

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

}  // namespace berth::cli
