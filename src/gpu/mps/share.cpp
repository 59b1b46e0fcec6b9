// SPDX-License-Identifier: Apache-2.0
#include "gpu/mps/share.hpp"

#include <fmt/format.h>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::gpu {

std::string name_of(const MpsShare& share, const std::string& state_dir,
                    const std::string& ledger) {
  const std::string text = state_dir + '\n' + ledger + '\n' + json::write(share);
  return fmt::format("{}-{:016x}", share.user, fnv1a(text));
}

std::vector<std::string> environment_of(const MpsShare& share) {
  std::vector<std::string> entries;
  if (share.limits.cores_percent) {
    entries.push_back(
        fmt::format("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={}", *share.limits.cores_percent));
  }
  if (!share.limits.memory_bytes) return entries;
  std::string& memory = entries.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=");
  for (size_t i = 0; i < share.gpus.size(); ++i) {
    memory += fmt::format("{}{}={}M", i == 0 ? "" : ",", i, *share.limits.memory_bytes >> 20);
  }
  return entries;
}

std::vector<std::string> commands_of(const MpsShare& share) {
  std::vector<std::string> lines;
  if (share.limits.cores_percent) {
    lines.push_back(
        fmt::format("set_default_active_thread_percentage {}", *share.limits.cores_percent));
  }
  if (!share.limits.memory_bytes) return lines;
  for (size_t i = 0; i < share.gpus.size(); ++i) {
    lines.push_back(fmt::format("set_default_device_pinned_mem_limit {} {}M", i,
                                *share.limits.memory_bytes >> 20));
  }
  return lines;
}

bool says_percent(std::string_view reply, uint32_t percent) {
  auto said = parse_decimal(trim(split(trim(reply), '\n').back()));
  return said && *said == percent;
}

bool says_bytes(std::string_view reply, uint64_t bytes) {
  for (std::string_view word : split_blank(reply)) {
    auto said = parse_bytes(word);
    if (said && (*said == bytes || *said == bytes >> 20)) return true;
  }
  return false;
}

MpsPlace place_of(const std::string& state_dir, const std::string& share) {
  MpsPlace place;
  place.root = state_dir + "/mps";
  place.directory = place.root + "/" + share;
  place.daemon = place.directory + "/daemon";
  place.pipes = place.directory + "/pipes";
  place.memory = place.directory + "/memory";
  place.logs = place.directory + "/logs";
  return place;
}

Result<MpsOrder> read_order(const MpsPlace& place) {
  constexpr size_t kMostOrder = size_t{64} << 10;
  const std::string path = place.directory + "/" + kMpsOrder;
  return json::read<MpsOrder>(TRY(sys::read_file(sys::cwd(), path, kMostOrder)), path);
}

void remove_share(const MpsPlace& place) {
  auto memory = sys::read_link(sys::cwd(), place.memory);
  bool ours = memory.ok() && memory->starts_with(kMpsMemory);
  if (ours) ignore(sys::remove_tree(sys::cwd(), memory->substr(0, memory->rfind('/'))));
  ignore(sys::remove_tree(sys::cwd(), place.directory));
}

}  // namespace berth::gpu
