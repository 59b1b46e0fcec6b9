// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/visible.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

uint32_t part_of(const Selected& one) {
  if (one.partition != nullptr) return one.partition->index;
  return one.slice != nullptr ? one.slice->index : 0;
}

bool before(const Selected& a, const Selected& b) {
  if (a.gpu->pci_address != b.gpu->pci_address) return a.gpu->pci_address < b.gpu->pci_address;
  return part_of(a) < part_of(b);
}

bool all_have_ids(const std::vector<Selected>& granted) {
  return std::ranges::all_of(granted, [](const Selected& one) {
    return one.slice != nullptr ? !one.slice->uuid.empty() : !one.gpu->uuid.empty();
  });
}

std::string ids(const std::vector<Selected>& granted) {
  std::vector<std::string> out;
  for (const Selected& one : granted) out.push_back(name_of(one));
  return join(out, ",");
}

/// The position of each granted GPU in PCI order among all granted ones: 3,1,5 → 1,0,2.
std::string ranks(const std::vector<Selected>& granted) {
  std::vector<std::string> out;
  for (const Selected& one : granted) {
    auto less = [&](const Selected& other) { return before(other, one); };
    out.push_back(std::to_string(std::ranges::count_if(granted, less)));
  }
  return join(out, ",");
}

std::string counted(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return join(out, ",");
}

bool has_word(const std::vector<std::string>& many, std::string_view one) {
  return std::ranges::find(many, one) != many.end();
}

// ROCR_VISIBLE_DEVICES sets the order. The indices of a second variable (HIP's) count the GPUs that
// the first one leaves.
std::string value_for(const std::string& variable, const Request& request,
                      const std::vector<Selected>& granted, bool by_id) {
  bool second =
      variable != "ROCR_VISIBLE_DEVICES" && has_word(request.translate, "ROCR_VISIBLE_DEVICES");
  if (granted.front().gpu->vendor == Vendor::amd && second) return counted(granted.size());
  bool cuda = variable == "CUDA_VISIBLE_DEVICES";
  return cuda && by_id ? ids(granted) : ranks(granted);
}

bool reads(Vendor vendor, std::string_view variable) {
  switch (vendor) {
    case Vendor::nvidia:
      return variable == "CUDA_VISIBLE_DEVICES" || variable == "GPU_DEVICE_ORDINAL";
    case Vendor::amd:
      return variable != "ZE_AFFINITY_MASK";
    case Vendor::intel:
      return variable == "ZE_AFFINITY_MASK";
  }
  return false;
}

bool names_one(std::string_view id, const std::vector<Selected>& granted) {
  if (auto index = parse_u64(id)) return *index < granted.size();
  return std::ranges::any_of(granted, [&](const Selected& one) {
    std::string legacy;
    if (one.slice != nullptr) {
      legacy = fmt::format("MIG-{}/{}/{}", one.gpu->uuid, one.slice->gpu_instance,
                           one.slice->compute_instance);
    }
    return name_of(one).starts_with(id) || legacy == id;
  });
}

// "0.1" of ZE_AFFINITY_MASK is a tile of GPU 0.
std::string_view without_tile(std::string_view id) {
  size_t dot = id.find('.');
  return dot != std::string_view::npos && parse_u64(id.substr(dot + 1)) ? id.substr(0, dot) : id;
}

/// The value may come from an image, so its length is limited.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 100;
  return escape_controls(text.substr(0, kMost)) + (text.size() > kMost ? "…" : "");
}

/// The first entry of `value` that names no GPU.
std::optional<std::string> first_stale(std::string_view value,
                                       const std::vector<Selected>& granted) {
  if (trim(value).empty() || trim(value) == "-1" || trim(value) == "NoDevFiles") {
    return std::nullopt;
  }
  for (std::string_view id : split(value, ',')) {
    id = trim(id);
    if (id == "-1") return std::nullopt;  // ends a list in CUDA
    if (!names_one(without_tile(id), granted)) return std::string(id);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> translate_selection(const Request& request,
                                             const std::vector<Selected>& granted) {
  std::vector<std::string> out;
  if (granted.empty()) return out;
  bool slices =
      std::ranges::any_of(granted, [](const Selected& one) { return one.slice != nullptr; });
  bool by_speed = !request.device_order.empty() && request.device_order != "PCI_BUS_ID";
  bool by_id = slices || (by_speed && all_have_ids(granted));
  bool numbered = false;
  for (const std::string& variable : request.translate) {
    if (!reads(granted.front().gpu->vendor, variable)) continue;
    out.push_back(variable + "=" + value_for(variable, request, granted, by_id));
    numbered = numbered || (variable == "CUDA_VISIBLE_DEVICES" && !by_id);
  }
  bool nvidia = granted.front().gpu->vendor == Vendor::nvidia;
  if (numbered && nvidia && request.device_order.empty() && granted.size() > 1) {
    out.emplace_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  return out;
}

std::vector<std::string> stale_selections(const Request& request,
                                          const std::vector<Selected>& granted) {
  std::vector<std::string> out;
  for (const std::string& entry : request.typed) {
    size_t equals = entry.find('=');
    auto stale = first_stale(entry.substr(equals + 1), granted);
    if (!stale) continue;
    std::string has_text = granted.empty()       ? "no GPU"
                           : granted.size() == 1 ? "1 GPU"
                                                 : fmt::format("{} GPUs", granted.size());
    out.push_back(fmt::format("{}: {} names no GPU of the container, which has {}", shown(entry),
                              quote(shown(*stale)), has_text));
  }
  return out;
}

}  // namespace berth::gpu
