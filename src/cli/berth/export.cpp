// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "engine/files/copy.hpp"

namespace berth::cli {
namespace {

struct ExportOptions {
  std::string output;
};

FlagTable export_flags(ExportOptions& o) {
  return {file_flag("output", 'o', "Write to FILE instead of stdout", &o.output)};
}

Result<int> run_export(Session& session, const ExportOptions& o, Arguments arguments) {
  if (is_image_file_name(o.output)) {
    return make_error(Kind::usage, "write " + quote(o.output) + ": export writes a tar archive",
                      "berth commit " + arguments[0] +
                          " NAME && berth save --format sqsh --output FILE.sqsh NAME");
  }
  if (o.output.empty() && session.terminal.is_terminal(Stream::out)) {
    return make_error(Kind::usage, "cannot write an archive to a terminal",
                      "berth export --output FILE CONTAINER");
  }
  std::string output = o.output.empty() ? "/dev/fd/1" : o.output;
  TRY(engine::export_container(session.context, arguments[0], output));
  return 0;
}

}  // namespace

const Verb export_verb{
    .text = {.name = "export",
             .arguments = "CONTAINER",
             .summary = "Export a container's file system, without volumes, as a tar archive",
             .example = "berth export --output web.tar web",
             .complete = Complete::container},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .command = [] { return make_command(export_flags, run_export); },
};

}  // namespace berth::cli
