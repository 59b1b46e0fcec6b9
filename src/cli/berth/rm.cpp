// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/removal.hpp"

namespace berth::cli {
namespace {

struct RmOptions {
  engine::EndOptions end;
  bool volumes = false;
};

FlagTable rm_flags(RmOptions& o) {
  return {{"force", 'f', "", "Kill running containers first; ignore missing ones", &o.end.force},
          {"volumes", 'v', "", "Also remove anonymous volumes of the containers", &o.volumes}};
}

Result<int> run_rm(Session& session, const RmOptions& o, Arguments arguments) {
  using engine::AnonymousVolumes;
  auto volumes = o.volumes ? AnonymousVolumes::remove : AnonymousVolumes::keep;
  return remove_containers(session, arguments, o.end, volumes);
}

constexpr std::string_view kNoLinks = "there are no links between containers";
/// Flags of docker, podman and enroot.
constexpr Elsewhere kRmElsewhere[] = {
    {"a", "berth rm -f $(berth ps -aq)"},
    {"all", "berth rm -f $(berth ps -aq)"},
    {"l", "berth network disconnect NETWORK CONTAINER", kNoLinks},
    {"link", "berth network disconnect NETWORK CONTAINER", kNoLinks},
};

}  // namespace

const Verb rm_verb{
    .text = {.name = "rm",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Remove containers",
             .example = "berth rm -f web",
             .complete = Complete::container},
    .arity = {1},
    .elsewhere = kRmElsewhere,
    .command = [] { return make_command(rm_flags, run_rm); },
};

}  // namespace berth::cli
