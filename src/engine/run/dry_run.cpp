// SPDX-License-Identifier: Apache-2.0
#include "engine/run/dry_run.hpp"

#include <utility>

#include "engine/decide/decide.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/run/new_container.hpp"
#include "engine/state/directory.hpp"
#include "sys/machine/host_facts.hpp"

namespace berth::engine {

Result<plan::Plan> plan_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  Decision decision = TRY(decide(context, resolved, make_container_id(), Leasing::look));
  plan::Container container;
  container.id = decision.id;
  container.bundle = bundle_path(context.paths, resolved.request(), decision.id);
  container.await_start = resolved.call().detach;
  plan::HostFacts facts;
  facts.user_namespace = context.identity != Identity::root;
  facts.tty_group_mapped = sys::is_group_mapped(5);
  facts.has_cgroups = sys::has_cgroups();
  return plan::make(decision.spec, container, facts);
}

Result<Explained> explain_run(const Context& context, Asked asked, const Progress& progress) {
  const Resolved resolved = TRY(resolve(context, std::move(asked), progress));
  Decision decision = TRY(decide(context, resolved, make_container_id(), Leasing::look));
  const RunRequest& request = resolved.request();
  return Explained{"", request.name.value_or(""), request.rootfs.value_or(request.image),
                   explain(std::move(decision.evidence), decision.spec)};
}

}  // namespace berth::engine
