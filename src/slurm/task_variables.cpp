// SPDX-License-Identifier: Apache-2.0
#include "slurm/task_variables.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.hpp"

namespace berth::slurm {
namespace {

constexpr uint64_t kFirstPort = 61000;
constexpr uint64_t kPorts = 4536;

}  // namespace

std::vector<std::pair<std::string, std::string>> torch_variables(
    const std::function<std::optional<std::string>(const std::string& name)>& variable,
    const std::string& first_node) {
  std::vector<std::pair<std::string, std::string>> out;
  auto take = [&](const char* name, const char* from) {
    if (auto value = variable(from)) out.emplace_back(name, std::move(*value));
  };
  take("RANK", "SLURM_PROCID");
  take("LOCAL_RANK", "SLURM_LOCALID");
  take("WORLD_SIZE", "SLURM_NTASKS");
  if (!first_node.empty()) out.emplace_back("MASTER_ADDR", first_node);
  auto text = variable("SLURM_JOB_ID");
  uint64_t job = 0;
  bool known =
      text && std::from_chars(text->data(), text->data() + text->size(), job).ec == std::errc();
  if (known) out.emplace_back("MASTER_PORT", std::to_string(kFirstPort + job % kPorts));
  return out;
}

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
