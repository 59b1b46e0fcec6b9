// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/modes.hpp"

#include <fcntl.h>

#include <algorithm>

#include "gpu/probe/use.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu {
namespace {

constexpr std::chrono::seconds kModePatience{30};
constexpr size_t kMostNote = 64;

/// Whether a share other than `own` has taken `gpu`.
bool is_taken(const std::string& root, const MpsOrder& own, const std::string& gpu) {
  auto names = sys::list_directory(sys::cwd(), root);
  if (!names.ok()) return false;
  return std::ranges::any_of(*names, [&](const std::string& name) {
    MpsPlace place;
    place.directory = root + "/" + name;
    auto order = read_order(place);
    if (!order.ok() || !order->takes || order->share == own.share) return false;
    const auto& gpus = order->share.gpus;
    return std::ranges::find(gpus, gpu) != gpus.end();
  });
}

}  // namespace

std::string Modes::note_of(const std::string& gpu) const {
  return root_ + "/" + std::string(kMpsMode) + gpu;
}

Result<Modes::Known> Modes::ask() const {
  Known known;
  Uses uses = TRY(ask_nvml_use(order_.probe, order_.nvml, kModePatience));
  for (const Use& use : uses.gpus) known[use.id] = use.compute_mode;
  for (const std::string& gpu : order_.share.gpus) {
    if (!known[gpu].empty()) continue;
    return make_error(Kind::unsupported, "the driver does not report the compute mode of " + gpu);
  }
  return known;
}

Result<void> Modes::take() {
  if (!order_.takes) return {};
  for (const std::string& node : nodes_.empty() ? order_.nodes : std::vector<std::string>()) {
    auto opened = sys::open_at(sys::cwd(), node, O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (opened.ok()) nodes_.push_back(std::move(*opened));
  }
  Known before = TRY(ask());
  std::vector<std::string> others;
  for (const std::string& gpu : order_.share.gpus) {
    auto noted = TRY(sys::stat_entry(sys::cwd(), note_of(gpu)));
    if (!noted) TRY(sys::replace_file(sys::cwd(), note_of(gpu), before[gpu], 0600));
    if (before[gpu] != kExclusiveProcess) others.push_back(gpu);
  }
  if (others.empty()) return {};
  TRY(set_compute_mode(order_.probe, order_.nvml, others, kExclusiveProcess, kModePatience));
  Known after = TRY(ask());
  for (const std::string& gpu : others) {
    if (after[gpu] == kExclusiveProcess) continue;
    return make_error(Kind::unsupported, "the driver does not keep the compute mode of " + gpu,
                      "nvidia-persistenced");
  }
  return {};
}

void Modes::give_back() {
  if (!order_.takes) return;
  std::map<std::string, std::vector<std::string>> back;  // by mode
  for (const std::string& gpu : order_.share.gpus) {
    auto before = sys::read_file_if_exists(sys::cwd(), note_of(gpu), kMostNote);
    bool noted = before.ok() && *before && !is_taken(root_, order_, gpu);
    if (noted) back[**before].push_back(gpu);
  }
  for (const auto& [mode, gpus] : back) {
    if (!set_compute_mode(order_.probe, order_.nvml, gpus, mode, kModePatience).ok()) continue;
    for (const std::string& gpu : gpus) ignore(sys::remove_entry(sys::cwd(), note_of(gpu)));
  }
  nodes_.clear();
}

}  // namespace berth::gpu
