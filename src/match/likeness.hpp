// SPDX-License-Identifier: Apache-2.0
// The nodes to which a record of a run applies. Pure.
#pragma once

#include "match/run_record.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// What else has to be alike besides architecture and processor.
struct Alike {
  bool gpus = false;  ///< and their driver, and the user land in use
  bool kernel = false;
};

/// The node can do everything that the node of `record` could: what ran there runs here. Gaining an
/// ability keeps this true. The processor is that one or descends from it. Every GPU of the node
/// has the compute capability of one of the record's, or a later minor of the same major; one of
/// unknown capability is of the same model. The driver is not older; with the image's own user land
/// it is the same version, because a module works with no other. GPUs made for tests only match
/// such GPUs.
bool reaches(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

/// The node can do no more than the node of `record`: what failed there is likely to fail here. The
/// inverse of reaches(), so that a node that gains an ability leaves failures behind, and SIGILL on
/// an old processor does not count against a new one.
bool is_within(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

}  // namespace berth::match
