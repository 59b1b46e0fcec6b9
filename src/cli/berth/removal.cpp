// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/removal.hpp"

#include <algorithm>
#include <map>

#include "cli/berth/common.hpp"

namespace berth::cli {

Result<int> remove_containers(Session& session, const std::vector<std::string>& containers,
                              engine::EndOptions end, engine::AnonymousVolumes volumes) {
  std::vector<std::string> names;
  std::map<std::string, std::string> ids;
  int ending = for_each_argument(session, containers, [&](const std::string& name) -> Result<void> {
    auto ended = engine::end_for_removal(session.context, name, end);
    bool missing = !ended.ok() && ended.error().kind == Kind::not_found;
    if (missing && end.force) return {};
    ids[name] = TRY(std::move(ended));
    names.push_back(name);
    return {};
  });
  // Files that users of the container wrote have owners that exist only in our user namespace.
  TRY(engine::enter_identity(engine::Needs::user_namespace, session.report));
  int removing = for_each_argument(session, names, [&](const std::string& name) -> Result<void> {
    TRY(engine::remove_container(session.context, ids[name], volumes));
    print(session, name + "\n");
    return {};
  });
  return std::max(ending, removing);
}

}  // namespace berth::cli
