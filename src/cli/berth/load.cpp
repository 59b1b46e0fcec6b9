// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"

namespace berth::cli {
namespace {

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

}  // namespace

const Verb load_verb{
    .text = {.name = "load",
             .summary = "Load images from an archive",
             .example = "berth load --input tools.tar"},
    .needs = engine::Needs::user_namespace,
    .arguments_elsewhere = load_elsewhere,
    .command = [] { return make_command(load_flags, run_load); },
};

}  // namespace berth::cli
