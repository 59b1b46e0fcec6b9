// SPDX-License-Identifier: Apache-2.0
// Demands on GPUs that are requested by count: --gpus 2,model=h200,memory>=40G.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/requirement.hpp"
#include "gpu/inventory/inventory.hpp"

namespace berth::gpu {

/// One demand: memory>=40G.
struct Trait {
  std::string name;  ///< model, memory, cc, numa, profile
  Factor::Op op = Factor::Op::equal;
  std::string value;    ///< as typed
  uint64_t number = 0;  ///< memory: bytes; numa: the node

  bool operator==(const Trait&) const = default;
};

const std::vector<std::string_view>& trait_names();

/// Whether `field` of --gpus is a demand: its key is one of model, memory, cc, numa, profile.
/// `memory>=40G` is a demand, `device=0` is not.
bool is_trait(std::string_view field);

/// Parses "model=h200", "memory>=40G", "cc>=9.0", "numa=1", "profile=1g.10gb". Sizes are decimal,
/// as in the names of GPUs ("80G" is 80·10⁹ bytes), except with Ki, Mi, Gi, Ti. Errors: usage (an
/// unknown key: suggests the nearest one; a comparison that means nothing; a bad value).
Result<Trait> parse_trait(std::string_view field);

/// Whether the GPU satisfies the demand. False if the property is unknown.
bool has_trait(const Selected& one, const Trait& trait);

/// The demand as typed: "memory>=40G".
std::string to_text(const Trait& trait);

}  // namespace berth::gpu
