// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/selected.hpp"

#include <fmt/format.h>

namespace berth::gpu {

std::string name_of(const Selected& selected) {
  const Gpu& gpu = *selected.gpu;
  if (selected.slice != nullptr && !selected.slice->uuid.empty()) return selected.slice->uuid;
  bool whole_gpu = selected.partition == nullptr && selected.slice == nullptr;
  return whole_gpu && !gpu.uuid.empty() ? gpu.uuid : index_of(selected);
}

std::string index_of(const Selected& selected) {
  std::string index = std::to_string(selected.gpu->index);
  if (selected.partition != nullptr) return index + ":" + std::to_string(selected.partition->index);
  if (selected.slice != nullptr) return index + ":" + std::to_string(selected.slice->index);
  return index;
}

std::string key_of(const Selected& selected) {
  if (selected.partition != nullptr) {
    return fmt::format("{}/{}", selected.gpu->pci_address, selected.partition->index);
  }
  if (selected.slice == nullptr) return selected.gpu->pci_address;
  return fmt::format("{}/{}/{}", selected.gpu->pci_address, selected.slice->gpu_instance,
                     selected.slice->compute_instance);
}

std::string_view vendor_name(Vendor vendor) {
  static constexpr std::string_view kNames[] = {"NVIDIA", "AMD", "Intel"};
  return kNames[static_cast<size_t>(vendor)];
}

}  // namespace berth::gpu
