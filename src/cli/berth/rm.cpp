// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "cli/berth/common.hpp"
#include "engine/containers.hpp"

namespace berth::cli {
namespace {

struct Options {
  engine::EndOptions end;
  bool volumes = false;
};

FlagTable flags(Options& o) {
  return {
      {"force", 'f', "", "Kill a running container first; a missing one is no error", &o.end.force},
      {"volumes", 'v', "", "Remove its anonymous volumes too", &o.volumes}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  std::vector<std::string> names;
  std::map<std::string, std::string> ids;
  int ending = for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto ended = engine::end_container(session.context, name, o.end);
    bool missing = !ended.ok() && ended.error().kind == Kind::not_found;
    if (missing && o.end.force) return {};
    ids[name] = TRY(std::move(ended));
    names.push_back(name);
    return {};
  });
  // What the container's users have written belongs to ids that only a namespace of ours has.
  TRY(engine::settle(engine::Needs::user_namespace, session.report));
  using engine::AnonymousVolumes;
  auto volumes = o.volumes ? AnonymousVolumes::remove : AnonymousVolumes::keep;
  int removing = for_each_argument(session, names, [&](const std::string& name) -> Result<void> {
    TRY(engine::remove_container(session.context, ids[name], volumes));
    print(session, name + "\n");
    return {};
  });
  return std::max(ending, removing);
}

}  // namespace

extern const Verb rm_verb;
const Verb rm_verb{
    .text = {.name = "rm",
             .arguments = "CONTAINER [CONTAINER...]",
             .summary = "Remove containers",
             .example = "berth rm -f web",
             .complete = Complete::container},
    .arity = {1},
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
