// SPDX-License-Identifier: Apache-2.0
#include "engine/build/bake.hpp"
#include "engine/image/facts.hpp"
#include "match/verdict.hpp"
#include "node/file/load.hpp"

namespace berth::engine {
namespace {

Result<match::Candidate> candidate_of(const Context& context, const CellReport& report) {
  match::Candidate candidate;
  candidate.descriptor.annotations = report.cell.annotations;
  candidate.descriptor.digest = report.inputs;  // there may be no manifest yet
  candidate.descriptor.platform = oci::host_platform();
  if (!report.cell.platform.empty()) {
    candidate.descriptor.platform = TRY(oci::parse_platform(report.cell.platform));
  }
  candidate.declared = match::read_declared(candidate.descriptor);
  if (!report.reference.empty()) {
    candidate.found = TRY(facts_of_image_named(context, report.reference));
  }
  return candidate;
}

const std::string& name_of(const match::Judged& entry) {
  return entry.candidate.descriptor.annotations.at(bake::kNameAnnotation);
}

/// Replaces names of index entries in a reason by names of cells.
std::string with_names(std::string reason, const match::Ranking& ranking) {
  for (const match::Judged& entry : ranking.entries) {
    std::string name = match::entry_name(entry.candidate);
    size_t at = reason.find(name);
    if (at != std::string::npos) reason.replace(at, name.size(), name_of(entry));
  }
  return reason;
}

BakeTake take_of(const node::Profile& node, const match::Ranking& ranking) {
  BakeTake take;
  take.node = node.name;
  const match::Judged* best = ranking.best();
  if (best == nullptr) {
    take.reason = match::refusal(ranking);
    return take;
  }
  take.cell = name_of(*best);
  take.outcome = best->verdict.outcome;
  const match::Clause* clause = best->verdict.decisive();
  if (clause != nullptr) take.reason = with_names(clause->reason, ranking);
  return take;
}

}  // namespace

Result<std::vector<BakeTake>> bake_fleet(const Context& context, const BakeReport& report,
                                         const std::string& directory) {
  std::vector<match::Candidate> candidates;
  for (const CellReport& cell : report.cells) {
    candidates.push_back(TRY(candidate_of(context, cell)));
  }
  std::vector<BakeTake> takes;
  for (const node::Profile& node : TRY(node::load_fleet(directory))) {
    takes.push_back(take_of(node, match::rank(candidates, node, {}, match::Explain::best)));
  }
  return takes;
}

}  // namespace berth::engine
