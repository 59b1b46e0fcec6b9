// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "cli/berth/common.hpp"
#include "engine/state/pruned.hpp"
#include "engine/system/disk.hpp"

/// Shared by the verbs that prune.
namespace berth::cli {

struct PruneFlags {
  bool force = false;
  std::vector<engine::Filter> filters;
};
/// --force and --filter.
FlagTable prune_flags(PruneFlags& flags);

engine::PruneOptions prune_options(const PruneFlags& flags);

/// Prints `warning` ("WARNING! This will …") and asks Docker's question. Returns true if the answer
/// is "y" or `force` is set. Without a terminal the answer is the first line of standard input.
Result<bool> confirm(Session& session, bool force, std::string_view warning);

/// Prints "Deleted Volumes:", the names and an empty line; nothing if there are no names.
void print_pruned(Session& session, std::string_view title, const engine::Pruned& pruned);
void print_reclaimed(Session& session, uint64_t bytes);

}  // namespace berth::cli
