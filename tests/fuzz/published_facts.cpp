// SPDX-License-Identifier: Apache-2.0
#include "image/published_facts.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "match/rank.hpp"
#include "match/verdict.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  auto facts =
      image::parse_published_facts(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!facts.ok()) return 0;
  node::Profile node;
  node.architecture = "amd64";
  node.cpu.level = 3;
  node.cpu.microarchitecture = "haswell";
  node.kernel.release = "6.1.0-13-amd64";
  node.driver.module_version = "580.65.06";
  node.gpus.resize(1);
  node.gpus[0].vendor = "nvidia";
  node.gpus[0].compute_capability = "9.0";
  std::vector<match::Candidate> candidates;
  for (const image::PublishedImage& image : facts->images) {
    match::Candidate candidate;
    candidate.declared = match::read_declared(image.config);
    candidate.descriptor.platform = image.platform;
    candidate.found = image.found;
    candidate.runs = image.runs;
    candidate.runs_believed = true;
    candidates.push_back(std::move(candidate));
  }
  match::Ranking ranking = match::rank(std::move(candidates), node, {});
  if (ranking.order.empty()) match::refusal(ranking);
  auto again = image::parse_published_facts(image::to_json(*facts));
  // The same text again: what is published twice is published once.
  if (again.ok() && image::to_json(*again) == image::to_json(*facts)) return 0;
  __builtin_trap();
}
