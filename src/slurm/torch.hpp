// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::slurm {

/// The rank of a task among all of a step for PyTorch's "env://" (RANK, LOCAL_RANK, WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT), from the task's Slurm variables; missing ones are left out.
/// `first_node` is that of the step, or "". The port is enroot's, 61000 + job % 4536, so that two
/// jobs on a node rarely collide. Pure.
/// Source: https://docs.pytorch.org/docs/stable/distributed.html, "Environment variable
/// initialization".
std::vector<std::pair<std::string, std::string>> torch_variables(
    const std::function<std::optional<std::string>(const std::string& name)>& variable,
    const std::string& first_node);

}  // namespace berth::slurm
