// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/removal.hpp"

#include <algorithm>
#include <map>

#include "cli/berth/common.hpp"
#include "engine/image/images.hpp"

namespace berth::cli {
namespace {

// ---- rm -----------------------------------------------------------------------------------------

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
/// Of docker, podman and enroot.
constexpr Elsewhere kRmElsewhere[] = {
    {"a", "berth rm -f $(berth ps -aq)"},
    {"all", "berth rm -f $(berth ps -aq)"},
    {"l", "berth network disconnect NETWORK CONTAINER", kNoLinks},
    {"link", "berth network disconnect NETWORK CONTAINER", kNoLinks},
};

// ---- rmi ----------------------------------------------------------------------------------------

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

/// Of docker.
constexpr Elsewhere kRmiElsewhere[] = {
    {"no-prune", "berth tag IMAGE NAME first, which keeps its layers",
     "unused layers are always removed"},
};

}  // namespace

Result<int> remove_containers(Session& session, const std::vector<std::string>& containers,
                              engine::EndOptions end, engine::AnonymousVolumes volumes) {
  std::vector<std::string> names;
  std::map<std::string, std::string> ids;
  int ending = for_each_argument(session, containers, [&](const std::string& name) -> Result<void> {
    auto ended = engine::end_container(session.context, name, end);
    bool missing = !ended.ok() && ended.error().kind == Kind::not_found;
    if (missing && end.force) return {};
    ids[name] = TRY(std::move(ended));
    names.push_back(name);
    return {};
  });
  // Files that the container's users wrote have owners that exist only in our namespace.
  TRY(engine::enter_identity(engine::Needs::user_namespace, session.report));
  int removing = for_each_argument(session, names, [&](const std::string& name) -> Result<void> {
    TRY(engine::remove_container(session.context, ids[name], volumes));
    print(session, name + "\n");
    return {};
  });
  return std::max(ending, removing);
}

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
