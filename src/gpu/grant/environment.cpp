// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/environment.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

using Want = Request::Want;

template <class T>
void add_once(std::vector<T>& many, T one) {
  if (std::ranges::find(many, one) == many.end()) many.push_back(std::move(one));
}

// "runtime.nvidia.com/gpu=0" selects a mode of NVIDIA's toolkit; the device follows the "=".
constexpr std::string_view kGenerator = "runtime.nvidia.com/";

void take_device(std::string_view id, DeviceWish& wish) {
  if (id.starts_with(kGenerator) && id.find('=') != std::string_view::npos) {
    id = id.substr(id.find('=') + 1);
    if (id == "all" && wish.want != Want::devices) wish.want = Want::all;
    if (id == "all") return;
  } else if (is_qualified_name(id)) {
    add_once(wish.cdi_names, std::string(id));
    return;
  }
  if (wish.want != Want::all) wish.want = Want::devices;
  add_once(wish.devices, std::string(id));
}

void take_channel(std::string_view word, ImexWords& words) {
  constexpr uint64_t kChannels = uint64_t{1} << 20;
  auto number = parse_u64(word);
  if (number && *number < kChannels) {
    add_once(words.channels, static_cast<uint32_t>(*number));
  } else {
    add_once(words.refused, std::string(word));
  }
}

}  // namespace

Variables::Variables(const std::vector<std::string>& under, const std::vector<std::string>& over) {
  for (const auto* list : {&under, &over}) {
    for (const std::string& entry : *list) {
      size_t equals = entry.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      values_[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
}

std::optional<std::string> Variables::get(std::string_view name) const {
  auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::pair<std::string, std::string>> Variables::starting(
    std::string_view prefix) const {
  std::vector<std::pair<std::string, std::string>> out;
  for (auto one = values_.lower_bound(prefix); one != values_.end(); ++one) {
    if (!one->first.starts_with(prefix)) break;
    out.emplace_back(*one);
  }
  return out;
}

bool is_qualified_name(std::string_view text) {
  size_t slash = text.find('/');
  size_t equals = text.find('=');
  bool ordered = slash != std::string_view::npos && equals != std::string_view::npos && slash > 0 &&
                 slash + 1 < equals && equals + 1 < text.size();
  return ordered && text.find_first_of(" \t\n,") == std::string_view::npos;
}

DeviceWish parse_visible_devices(std::string_view value) {
  DeviceWish wish;
  value = trim(value);
  if (value.empty() || value == "void") return wish;
  if (value == "none" || value == "all") {
    wish.want = value == "all" ? Want::all : Want::driver_files;
    return wish;
  }
  for (std::string_view id : split(value, ',')) {
    if (!trim(id).empty()) take_device(trim(id), wish);
  }
  if (wish.want == Want::all) wish.devices.clear();
  return wish;
}

bool is_legacy_image(const Variables& variables) {
  return variables.get("CUDA_VERSION") && !variables.get("NVIDIA_REQUIRE_CUDA");
}

std::optional<std::string> legacy_requirement(const Variables& variables) {
  std::string version = variables.get("CUDA_VERSION").value_or("");
  auto parts = split(version, '.');
  if (parts.size() < 2 || !parse_u64(parts[0]) || !parse_u64(parts[1])) return std::nullopt;
  return "cuda>=" + std::string(parts[0]) + "." + std::string(parts[1]);
}

CapabilityWords parse_capabilities(std::string_view value) {
  CapabilityWords words;
  const auto& known = known_capabilities();
  for (std::string_view word : split(value, ',')) {
    word = trim(word);
    if (word.empty()) continue;
    bool one = word == "all" || std::ranges::find(known, word) != known.end();
    add_once(one ? words.known : words.unknown, std::string(word));
  }
  return words;
}

bool is_true(std::string_view text) {
  static const std::set<std::string_view> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  return kTrue.contains(text);
}

ImexWords parse_imex_channels(std::string_view value) {
  ImexWords words;
  for (std::string_view word : split(value, ',')) {
    if (!trim(word).empty()) take_channel(trim(word), words);
  }
  return words;
}

VolumeWish parse_volume_devices(const std::vector<std::string>& paths) {
  VolumeWish wish;
  for (const std::string& path : paths) {
    auto parts = split(path, '/');
    if (parts.size() == 2 && parts[0] == "imex") {
      take_channel(parts[1], wish.imex);
    } else if (parts.size() == 4 && parts[0] == "cdi") {
      std::string name = std::string(parts[1]) + "/" + std::string(parts[2]) + "=";
      name += parts[3];
      if (is_qualified_name(name)) add_once(wish.devices.cdi_names, std::move(name));
    } else if (parts.size() == 1 && path == "all") {
      wish.devices.want = Want::all;
    } else if (!path.empty() && path.find(',') == std::string::npos) {
      // A slash is part of MIG-GPU-<uuid>/<gi>/<ci>.
      take_device(path, wish.devices);
    }
  }
  if (wish.devices.want == Want::all) wish.devices.devices.clear();
  return wish;
}

bool needs_driver_volume(const std::map<std::string, std::string>& labels) {
  auto label = labels.find("com.nvidia.volumes.needed");
  return label != labels.end() && label->second == "nvidia_driver";
}

}  // namespace berth::gpu
