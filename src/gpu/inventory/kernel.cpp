// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/kernel.hpp"

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
  // The words before differ ("Kernel Module", "Open Kernel Module for x86_64"): the first word of
  // digits and dots is the version.
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

}  // namespace berth::gpu
