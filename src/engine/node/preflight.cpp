// SPDX-License-Identifier: Apache-2.0
#include "engine/node/preflight.hpp"

#include <iterator>
#include <utility>

#include "doctor/preflight.hpp"
#include "engine/node/node.hpp"
#include "gpu/grant/request.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"

namespace berth::engine {
namespace {

using doctor::Finding;
using doctor::Status;
using Want = gpu::Request::Want;

/// Judges the entry that the node chooses. That an image has code only for other GPUs is just a
/// remark when a container starts, since the program may not use GPUs. Here it is a problem, since
/// the job waits for these GPUs.
Finding fit_of(const Answer& answer) {
  const match::Judged* best = answer.ranking.best();
  if (best == nullptr) {
    return {Status::problem, match::refusal(answer.ranking), "see 'berth why'", {}};
  }
  bool unfit = best->verdict.rank.other != 0 && !answer.node.gpus.empty();
  const match::Clause* clause = best->verdict.decisive();
  for (const match::Clause& one : best->verdict.clauses) {
    if (unfit && one.about == "gpu" && one.outcome == match::Outcome::runs_but) clause = &one;
  }
  if (clause == nullptr) return {Status::ok, match::entry_name(best->candidate) + " runs", {}, {}};
  return {unfit ? Status::problem : Status::warning, clause->reason, clause->remedy, {}};
}

Finding count_of(const gpu::Request& request, size_t there) {
  size_t wanted = request.want == Want::count ? request.count : request.devices.size();
  if (request.want == Want::all) wanted = 1;
  std::string has = there == 0 ? "no GPU" : std::to_string(there) + (there == 1 ? " GPU" : " GPUs");
  if (wanted <= there) return {Status::ok, "this node has " + has, {}, {}};
  return {Status::problem,
          "the job asks for " + (request.want == Want::all ? "GPUs" : std::to_string(wanted)) +
              ", this node has " + has,
          "--constraint or --gres with what 'berth slurm features' prints",
          {}};
}

}  // namespace

Result<Preflight> preflight(const Context& context, const PreflightRequest& request) {
  std::optional<gpu::Request> gpus;
  if (request.gpus) gpus = TRY(gpu::parse_request(*request.gpus));
  Preflight out;
  node::Profile node;
  if (request.image) {
    MatchRequest match = request.match;
    match.reference = *request.image;
    match.needs_gpus = !gpus || gpus->want != Want::none;
    Offer offer = TRY(look_up(context, match));
    Answer answer = TRY(match_node(context, match, offer));
    out.answers.push_back({"image.fit", fit_of(answer)});
    node = std::move(answer.node);
  } else {
    node = TRY(node_of(context, request.match.node));
  }
  if (gpus) out.answers.push_back({"image.gpus", count_of(*gpus, node.gpus.size())});
  for (const doctor::Answer& answer : out.answers) {
    out.refused = out.refused || answer.finding.status == Status::problem;
  }
  if (request.match.node) return out;
  std::string root = context.paths.driver_root.empty() ? "/" : context.paths.driver_root;
  auto facts =
      doctor::gather_preflight(root, node.fabric, !node.gpus.empty(),
                               std::string(context.environment.get("NCCL_TOPO_FILE").value_or("")));
  auto answers = doctor::judge_preflight(facts);
  std::move(answers.begin(), answers.end(), std::back_inserter(out.answers));
  return out;
}

}  // namespace berth::engine
