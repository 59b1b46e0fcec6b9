// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/files/copy.hpp"

namespace berth::cli {
namespace {

struct CpOptions {
  engine::CopyOptions copy;
  bool quiet = false;
};

FlagTable cp_flags(CpOptions& o) {
  return {
      {"archive", 'a', "", "Keep user and group ids where possible", &o.copy.archive},
      {"follow-link", 'L', "", "Follow a symbolic link at SOURCE", &o.copy.follow_link},
      {"quiet", 'q', "", "Print nothing (the default)", &o.quiet},
  };
}

Result<int> run_cp(Session& session, const CpOptions& o, Arguments arguments) {
  engine::CopySide from = engine::parse_copy_side(arguments[0]);
  engine::CopySide to = engine::parse_copy_side(arguments[1]);
  if (to.container.empty() && to.path == "-" && session.terminal.is_terminal(Stream::out)) {
    return make_error(Kind::usage, "cannot write an archive to a terminal",
                      "berth cp CONTAINER:PATH FILE");
  }
  if (from.container.empty() && from.path == "-" && session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no archive on stdin", "tar -c FILE | berth cp - CONTAINER:DIR");
  }
  engine::CopyOptions options = o.copy;
  options.working_directory = session.working_directory;
  TRY(engine::copy_files(session.context, from, to, options));
  return 0;
}

/// The argument that names a container.
std::string container_of(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    std::string container = engine::parse_copy_side(argument).container;
    if (!container.empty()) return container;
  }
  return "";
}

}  // namespace

const Verb cp_verb{
    .text = {.name = "cp",
             .arguments = "CONTAINER:SOURCE|SOURCE|- DESTINATION|CONTAINER:DESTINATION|-",
             .summary = "Copy files between a container and the host",
             .example = "berth cp web:/var/log/. logs",
             .complete = Complete::container},
    .arity = {2, 2},
    .needs = engine::Needs::container,
    .container = container_of,
    .command = [] { return make_command(cp_flags, run_cp); },
};

}  // namespace berth::cli
