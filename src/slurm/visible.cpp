// SPDX-License-Identifier: Apache-2.0
#include "slurm/visible.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::slurm {

std::optional<std::string> of_task(std::string_view step, std::string_view container,
                                   std::string_view task) {
  if (task == step) return std::string(container);
  auto of_step = split(step, ',');
  auto inside = split(container, ',');
  if (of_step.size() != inside.size()) return std::nullopt;
  std::string out;
  for (std::string_view one : split(task, ',')) {
    auto found = std::ranges::find(of_step, one);
    if (found == of_step.end()) return std::nullopt;
    if (!out.empty()) out += ',';
    out += inside[static_cast<size_t>(found - of_step.begin())];
  }
  return out;
}

}  // namespace berth::slurm
