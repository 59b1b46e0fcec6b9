// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/gpu_terms.hpp"

#include "base/text.hpp"
#include "cli/core/words.hpp"

namespace berth::cli {

std::string terms_of(const gpu::Lease& lease) {
  std::vector<std::string> terms;
  if (lease.exclusive) terms.emplace_back("exclusive");
  if (lease.mps && lease.mps->cores_percent) {
    terms.push_back(std::to_string(*lease.mps->cores_percent) + "%");
  }
  if (lease.mps && lease.mps->memory_bytes) terms.push_back(binary_bytes(*lease.mps->memory_bytes));
  return terms.empty() ? "" : " (" + join(terms, " ") + ")";
}

}  // namespace berth::cli
