// SPDX-License-Identifier: Apache-2.0
#include "engine/run/dry_run.hpp"

#include <utility>

#include "engine/container/launch.hpp"
#include "engine/decide/decide.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/run/bundle.hpp"
#include "engine/run/new_container.hpp"
#include "json/fields.hpp"

namespace berth::engine {
Result<PlannedRun> plan_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  // Removed at the end of this call: berth-runtime reads the bundle at the path of a real run.
  NewContainer made = TRY(NewContainer::begin(context, resolved, Owner::nobody));
  Decision decision = TRY(decide(context, resolved, made.id(), Leasing::look));
  TRY(write_config(decision, made.directory()));
  const std::string bundle = bundle_path(context.paths, resolved.request(), made.id());
  std::vector<std::string> words = {"--decided", "plan", "--format", "json", "--bundle", bundle};
  // The monitor uses `create` before `start`.
  if (owner_of(resolved) == Owner::monitor) words.emplace_back("--create");
  words.push_back(made.id());
  std::string plan = TRY(call_runtime(context, std::move(words)));
  return json::read<PlannedRun>(plan, "plan of berth-runtime");
}

Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  Decision decision = TRY(decide(context, resolved, make_container_id(), Leasing::look));
  const RunRequest& request = resolved.request();
  return Explained{"", request.name.value_or(""), request.rootfs.value_or(request.image),
                   explain(std::move(decision.provenance), decision.spec)};
}

}  // namespace berth::engine
