// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/select.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

std::string gpus(size_t count) {
  return count == 1 ? std::string("1 GPU") : fmt::format("{} GPUs", count);
}

std::vector<Selected> everything(const Inventory& inventory) {
  std::vector<Selected> out;
  for (const Gpu& gpu : inventory.gpus) {
    if (!gpu.mig_mode) out.push_back({&gpu, nullptr});
    for (const MigDevice& slice : gpu.mig) out.push_back({&gpu, &slice});
  }
  return out;
}

Error absent(const Inventory& inventory) {
  if (inventory.driver.module_version.empty()) {
    return make_error(
        Kind::not_found, "no NVIDIA driver is loaded on this machine",
        inventory.driver.library_version.empty() ? "berth gpu list" : "modprobe nvidia");
  }
  return make_error(Kind::not_found, "the NVIDIA driver finds no GPU on this machine",
                    "berth gpu list");
}

Error no_such_device(const std::string& id, const Inventory& inventory) {
  return make_error(Kind::not_found,
                    fmt::format("--gpus device={}: no such GPU, this machine has {}",
                                escape_controls(id), gpus(inventory.gpus.size())),
                    "berth gpu list");
}

Result<Selected> by_index(const std::string& id, const Inventory& inventory) {
  size_t colon = id.find(':');
  auto index = parse_u64(id.substr(0, colon));
  if (!index || *index >= inventory.gpus.size()) return no_such_device(id, inventory);
  const Gpu& gpu = inventory.gpus[static_cast<size_t>(*index)];
  if (colon == std::string::npos) {
    if (!gpu.mig_mode) return Selected{&gpu, nullptr};
    return make_error(
        Kind::usage,
        fmt::format(
            "--gpus device={}: the GPU is in MIG mode, its {} slices are granted one by one", id,
            gpu.mig.size()),
        fmt::format("--gpus device={}:0", id));
  }
  auto slice = parse_u64(id.substr(colon + 1));
  for (const MigDevice& candidate : gpu.mig) {
    if (slice == candidate.index) return Selected{&gpu, &candidate};
  }
  return make_error(Kind::not_found,
                    fmt::format("--gpus device={}: GPU {} has {} MIG slices", escape_controls(id),
                                *index, gpu.mig.size()),
                    "berth gpu list");
}

// The whole id, or a prefix that only one has.
Result<Selected> by_uuid(const std::string& id, const Inventory& inventory) {
  std::vector<Selected> matches;
  bool any_uuid = false;
  for (const Gpu& gpu : inventory.gpus) {
    any_uuid = any_uuid || !gpu.uuid.empty();
    if (gpu.uuid == id) return by_index(std::to_string(gpu.index), inventory);
    if (!gpu.uuid.empty() && gpu.uuid.starts_with(id)) matches.push_back({&gpu, nullptr});
    for (const MigDevice& slice : gpu.mig) {
      // The older form MIG-GPU-<uuid>/<gi>/<ci> needs no NVML.
      std::string legacy =
          fmt::format("MIG-{}/{}/{}", gpu.uuid, slice.gpu_instance, slice.compute_instance);
      if (slice.uuid == id || (!gpu.uuid.empty() && legacy == id)) return Selected{&gpu, &slice};
      if (!slice.uuid.empty() && slice.uuid.starts_with(id)) matches.push_back({&gpu, &slice});
    }
  }
  if (matches.size() == 1) {
    const Selected& match = matches.front();
    return match.slice != nullptr ? Result<Selected>(match)
                                  : by_index(std::to_string(match.gpu->index), inventory);
  }
  if (matches.size() > 1) {
    return make_error(Kind::usage,
                      fmt::format("--gpus device={}: {} GPUs have an id that starts so",
                                  escape_controls(id), matches.size()),
                      "give more of the id; berth gpu list");
  }
  if (!any_uuid) {
    return make_error(
        Kind::not_found,
        fmt::format("--gpus device={}: the driver tells no GPU's id", escape_controls(id)),
        "name it by index: --gpus device=0");
  }
  return no_such_device(id, inventory);
}

}  // namespace

std::string name_of(const Selected& selected) {
  const Gpu& gpu = *selected.gpu;
  if (selected.slice != nullptr) {
    if (!selected.slice->uuid.empty()) return selected.slice->uuid;
    return fmt::format("{}:{}", gpu.index, selected.slice->index);
  }
  return gpu.uuid.empty() ? std::to_string(gpu.index) : gpu.uuid;
}

Result<std::vector<Selected>> select(const Request& request, const Inventory& inventory) {
  using Want = Request::Want;
  if (request.want == Want::none) return std::vector<Selected>();
  if (inventory.gpus.empty()) return absent(inventory);
  std::vector<Selected> all = everything(inventory);
  if (request.want == Want::all) {
    if (all.empty()) {
      return make_error(Kind::not_found, "--gpus all: every GPU is in MIG mode and has no slice",
                        "nvidia-smi mig -cgi 19 -C");
    }
    return all;
  }
  if (request.want == Want::count) {
    if (request.count > all.size()) {
      return make_error(
          Kind::usage,
          fmt::format("--gpus {}: this machine has {}", request.count, gpus(all.size())),
          "berth gpu list");
    }
    all.resize(request.count);
    return all;
  }
  std::vector<Selected> out;
  for (const std::string& id : request.devices) {
    bool uuid = id.starts_with("GPU-") || id.starts_with("MIG-");
    Selected one = uuid ? TRY(by_uuid(id, inventory)) : TRY(by_index(id, inventory));
    auto same = [&](const Selected& s) { return s.gpu == one.gpu && s.slice == one.slice; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(one);
  }
  return out;
}

}  // namespace berth::gpu
