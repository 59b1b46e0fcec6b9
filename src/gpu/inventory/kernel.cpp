// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/kernel.hpp"

#include <fmt/format.h>

#include <set>

#include "base/text.hpp"

namespace berth::gpu {

std::map<std::string, std::string> parse_labels(std::string_view text) {
  std::map<std::string, std::string> out;
  for (std::string_view line : split(text, '\n')) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    out[std::string(trim(line.substr(0, colon)))] = std::string(trim(line.substr(colon + 1)));
  }
  return out;
}

std::map<std::string, uint32_t> parse_majors(std::string_view text) {
  std::map<std::string, uint32_t> out;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("Block devices")) break;
    auto words = split_blank(line);
    if (words.size() != 2) continue;
    auto number = parse_u64(words[0]);
    if (number && *number <= UINT32_MAX) out.emplace(words[1], static_cast<uint32_t>(*number));
  }
  return out;
}

std::string parse_module_version(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with("NVRM version:")) return {};
  // The words before the version differ ("Kernel Module", "Open Kernel Module for x86_64"), so the
  // first word of digits and dots is taken.
  for (std::string_view word : split_blank(line)) {
    bool is_version = word.find('.') != std::string_view::npos &&
                      word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (is_version) return std::string(word);
  }
  return {};
}

Result<std::string> module_version(const DriverRoot& root) {
  if (auto text = TRY(root.read_machine("/sys/module/nvidia/version"))) {
    return std::string(trim(*text));
  }
  auto text = TRY(root.read_machine("/proc/driver/nvidia/version"));
  return parse_module_version(text.value_or(""));
}

std::map<std::string, uint64_t> parse_properties(std::string_view text) {
  std::map<std::string, uint64_t> out;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 2) continue;
    if (auto value = parse_u64(words[1])) out.insert_or_assign(std::string(words[0]), *value);
  }
  return out;
}

std::optional<KfdNode> parse_kfd_node(std::string_view properties) {
  auto values = parse_properties(properties);
  if (values["simd_count"] == 0 || values["drm_render_minor"] == 0) return std::nullopt;
  KfdNode node;
  node.render_minor = static_cast<uint32_t>(values["drm_render_minor"]);
  node.unique_id = values["unique_id"];
  // The low bits are bus, device and function as in PCI; the highest four bits are the number of
  // the partition.
  uint64_t location = values["location_id"];
  node.partition = static_cast<uint32_t>(location >> 28 & 0xf);
  node.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", values["domain"] & UINT32_MAX,
                                 location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
  // 90010 is major 9, minor 0, stepping 10: "gfx90a".
  uint64_t version = values["gfx_target_version"];
  if (version != 0) {
    node.architecture =
        fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
  }
  return node;
}

std::map<uint64_t, KfdNode> read_kfd_nodes(const DriverRoot& root) {
  std::map<uint64_t, KfdNode> nodes;
  for (const std::string& name : names_in(root, std::string(kKfdNodes))) {
    const std::string base = fmt::format("{}/{}", kKfdNodes, name);
    auto id = parse_u64(text_of(root, base + "/gpu_id"));
    auto node = parse_kfd_node(text_of(root, base + "/properties"));
    if (id && node) nodes.emplace(*id, std::move(*node));
  }
  return nodes;
}

std::vector<KfdProcess> read_kfd_processes(const DriverRoot& root) {
  std::vector<KfdProcess> out;
  const auto nodes = read_kfd_nodes(root);
  if (nodes.empty()) return out;
  for (const std::string& name : names_in(root, std::string(kKfdProcesses))) {
    auto pid = parse_u64(name);
    if (!pid || *pid == 0 || *pid > INT32_MAX) continue;
    const std::string queues = fmt::format("{}/{}/queues", kKfdProcesses, name);
    std::set<uint64_t> ids;
    for (const std::string& queue : names_in(root, queues)) {
      if (auto id = parse_u64(text_of(root, queues + "/" + queue + "/gpuid"))) ids.insert(*id);
    }
    for (uint64_t id : ids) {
      auto node = nodes.find(id);
      if (node != nodes.end()) out.push_back({static_cast<int64_t>(*pid), node->second});
    }
  }
  return out;
}

}  // namespace berth::gpu
