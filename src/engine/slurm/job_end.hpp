// SPDX-License-Identifier: Apache-2.0
// What a job leaves on its nodes, for Slurm's epilog.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The names of the remaining containers of job `job` on this node: those of steps, which remain if
/// their owner was killed, and with `of_job` also the job's named ones: "12" gives "pyxis_12_web".
/// Errors: usage (not the number of a job), io.
Result<std::vector<std::string>> containers_of_job(const Context& context, const std::string& job,
                                                   bool of_job);

}  // namespace berth::engine
