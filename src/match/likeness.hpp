// SPDX-License-Identifier: Apache-2.0
// Which nodes a record of a run speaks for. Pure.
#pragma once

#include "match/run_record.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// What has to be alike beside architecture and processor, for what is asked.
struct Alike {
  bool gpus = false;  ///< and their driver, and whose user land is used
  bool kernel = false;
};

/// The node can do all that the one of `record` could: what ran there runs here. A node that gains
/// an ability stays so.
/// The processor is that one or descends from it. Every GPU of the node has the compute capability
/// of one of the record's, or a later minor of the same major; one whose capability nobody knows is
/// of the same model. The driver is not older; with the image's own user land it is the same,
/// because a module takes no other. GPUs made for tests speak for such GPUs alone.
bool reaches(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

/// The node can do no more than the one of `record`: what failed there is likely to fail here. The
/// other way round than reaches(), so that a node that gains an ability only leaves a failure
/// behind, and SIGILL on an old processor is not held against a new one.
bool is_within(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

}  // namespace berth::match
