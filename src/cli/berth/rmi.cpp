// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

struct RmiOptions {
  engine::RemoveImageOptions remove;
};

FlagTable rmi_flags(RmiOptions& o) {
  return {
      {"force", 'f', "", "Remove an image even if a stopped container uses it", &o.remove.force}};
}

Result<int> run_rmi(Session& session, const RmiOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto done = engine::remove_image(session.context, name, o.remove);
    bool missing = !done.ok() && done.error().kind == Kind::not_found;
    if (missing && o.remove.force) {
      session.report.warn(to_line(done.error()) + ", ignoring");
      return {};
    }
    engine::RemovedImage removed = TRY(std::move(done));
    for (const auto& reference : removed.untagged) {
      print(session, "Untagged: " + reference + "\n");
    }
    for (const auto& digest : removed.deleted) print(session, "Deleted: " + digest + "\n");
    return {};
  });
}

/// Flags of docker.
constexpr Elsewhere kRmiElsewhere[] = {
    {"no-prune", "berth tag IMAGE NAME first, which keeps its layers",
     "unused layers are always removed"},
};

}  // namespace

const Verb rmi_verb{
    .text = {.name = "rmi",
             .arguments = "IMAGE [IMAGE...]",
             .summary = "Remove images",
             .example = "berth rmi debian:12",
             .complete = Complete::image},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .store = Store::swept,
    .elsewhere = kRmiElsewhere,
    .command = [] { return make_command(rmi_flags, run_rmi); },
};

}  // namespace berth::cli
