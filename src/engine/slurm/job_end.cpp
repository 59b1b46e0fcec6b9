// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/job_end.hpp"

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/slurm/container_names.hpp"

namespace berth::engine {

Result<std::vector<std::string>> containers_of_job(const Context& context, const std::string& job,
                                                   bool of_job) {
  if (!parse_u64(job)) return make_error(Kind::usage, quote(job) + " is not the number of a job");
  const std::string node(context.environment.get_filled(kNodeVariable).value_or(""));
  std::vector<std::string> names;
  for (const ContainerSummary& one : TRY(list_containers(context, Which::all))) {
    bool is_named = of_job && one.name.starts_with(job_prefix(job));
    // Nodes may share one store, and a container that the user named is not removed with its step.
    bool of_step = one.remove && one.name.starts_with(kPyxisPrefix + job + ".") &&
                   one.name.substr(one.name.find('-') + 1) == node;
    if (is_named || of_step) names.push_back(one.name);
  }
  return names;
}

}  // namespace berth::engine
