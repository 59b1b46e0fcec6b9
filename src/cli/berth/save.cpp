// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::string output;
  std::string format = "archive";
  image::RegistryAccess access;
};

FlagTable flags(Options& o) {
  FlagTable table = {
      {"output", 'o', "FILE", "Write to FILE instead of stdout", &o.output, {}, Complete::file},
      {"format",
       0,
       "FORMAT",
       "One tar for docker and OCI tools (archive), or an OCI directory (oci)",
       &o.format,
       {"archive", "oci"}},
  };
  add_registry_flags(table, o.access);
  return table;
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  image::SaveRequest request;
  request.references = std::move(arguments);
  request.output = o.output;
  request.format = o.format;
  request.access = o.access;
  if (o.output.empty()) {
    if (session.terminal.is_terminal(Stream::out)) {
      return make_error(Kind::usage, "an archive is not for a terminal",
                        "berth save --output FILE IMAGE");
    }
    if (o.format == "oci") {
      return make_error(Kind::usage, "a directory needs a name",
                        "berth save --format oci --output DIR IMAGE");
    }
    request.output = "/dev/fd/1";
  }
  TRY(transfer_shown(session, std::move(request), Stream::err, Direction::push, false));
  return 0;
}

}  // namespace

extern const Verb save_verb;
const Verb save_verb{
    .text = {.name = "save",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Write images to an archive",
             .example = "berth save --output tools.tar localhost:5000/tools:1",
             .complete = Complete::image},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
