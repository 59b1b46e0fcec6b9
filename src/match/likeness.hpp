// SPDX-License-Identifier: Apache-2.0
// Decides to which nodes a record of a run applies. Pure.
#pragma once

#include "match/run_record.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// The properties that have to be alike in addition to architecture and processor.
struct Alike {
  bool gpus = false;  ///< GPUs, their driver, and the user-land driver in use
  bool kernel = false;
};

/// Whether the node can do everything that the node of `record` could: an image that ran there runs
/// here. This stays true if the node gains an ability. The processor runs code for the
/// recorded one (node::runs()). Every GPU of the node has the compute capability of a recorded GPU,
/// or a later minor version of the same major version; a GPU of unknown capability is of the same
/// model as a recorded GPU. The driver is not older than the recorded one. With the image's own
/// user-land driver it has the same version, because a module works only with libraries of its own
/// version. Synthetic GPUs (made for tests) match only synthetic GPUs.
bool reaches(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

/// Whether the node can do no more than the node of `record`: an image that failed there is likely
/// to fail here. The inverse of reaches(): once a node gains an ability, old failures no longer
/// count, and SIGILL on an old processor does not count against a new processor.
bool is_within(const node::Profile& node, const RunRecord& record, UserLand user_land, Alike alike);

}  // namespace berth::match
