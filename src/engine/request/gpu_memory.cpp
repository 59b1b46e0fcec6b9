// SPDX-License-Identifier: Apache-2.0
#include "engine/request/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMostCapacity = 65536;

Error refused(Kind kind, const std::string& why, std::string hint) {
  return make_error(kind, "--gpu-memory: " + why, std::move(hint));
}

/// The region of the whole memory of `gpu`, by the name that the driver gives it; null: none.
const MemoryRegions::value_type* region_of(const gpu::Gpu& gpu, const MemoryRegions& regions) {
  for (const char* form : {"nvidia/{}/vidmem", "drm/{}/vram0", "drm/{}/vram"}) {
    auto found = regions.find(fmt::format(fmt::runtime(form), gpu.pci_address));
    if (found != regions.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

Result<GpuMemory> parse_gpu_memory(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ',');
  auto most = parse_bytes(parts[0]);
  auto kept = parts.size() > 1 ? parse_bytes(parts[1]) : std::nullopt;
  bool fine = parts.size() <= 2 && most && *most > 0 && kept.has_value() == (parts.size() == 2) &&
              kept.value_or(0) <= *most;
  if (fine) return GpuMemory{*most, kept};
  return make_error(
      Kind::usage,
      "expected a limit, such as 10g, or a limit and at most as much reserved: 10g,8g");
}

Result<uint32_t> parse_gpu_cores(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  auto percent = parse_u64(text);
  if (percent && *percent >= 1 && *percent <= 100) return static_cast<uint32_t>(*percent);
  return make_error(Kind::usage, "expected a percentage of 1 to 100, such as 25");
}

MemoryRegions parse_memory_regions(std::string_view capacity) {
  MemoryRegions regions;
  for (std::string_view line : split(capacity, '\n')) {
    size_t blank = line.find(' ');
    if (blank == std::string_view::npos || blank == 0) continue;
    auto bytes = parse_u64(trim(line.substr(blank)));
    if (bytes) regions.emplace(line.substr(0, blank), *bytes);
  }
  return regions;
}

Result<MemoryRegions> memory_regions_of(const gpu::Inventory& inventory) {
  const std::string root = inventory.synthetic ? inventory.driver_root : "";
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string path = root + mount + "/dmem.capacity";
    auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMostCapacity));
    if (text) return parse_memory_regions(*text);
  }
  return MemoryRegions();
}

bool has_region(const gpu::Gpu& gpu, const MemoryRegions& regions) {
  return region_of(gpu, regions) != nullptr;
}

bool lacks_region(const gpu::Inventory& inventory, const MemoryRegions& regions) {
  return std::ranges::any_of(inventory.gpus, [&](const gpu::Gpu& gpu) {
    return gpu.vendor == gpu::Vendor::nvidia && !has_region(gpu, regions);
  });
}

Result<std::map<std::string, std::string>> limit_gpu_memory(
    const GpuMemory& wanted, const std::vector<gpu::Selected>& selected,
    const MemoryRegions& regions) {
  if (selected.empty()) return refused(Kind::usage, "no GPU was requested", "--gpus");
  std::map<std::string, std::string> files;
  for (const gpu::Selected& one : selected) {
    const std::string name = "GPU " + gpu::index_of(one);
    if (one.slice != nullptr || one.partition != nullptr) {
      return refused(Kind::unsupported, name + " is a part that has its own memory",
                     "leave it out");
    }
    auto region = region_of(*one.gpu, regions);
    if (region == nullptr) {
      return refused(Kind::unsupported,
                     "nothing on this machine can limit the memory of " + name +
                         ": the kernel's dmem controller does not list it",
                     "a MIG slice, or leave it out");
    }
    const auto& [key, capacity] = *region;
    if (wanted.most > capacity) {
      return refused(Kind::usage, fmt::format("{} has {} bytes", name, capacity), "berth gpu list");
    }
    files["dmem.max"] += fmt::format("{} {}\n", key, wanted.most);
    if (wanted.kept) files["dmem.min"] += fmt::format("{} {}\n", key, *wanted.kept);
  }
  return files;
}

}  // namespace berth::engine
