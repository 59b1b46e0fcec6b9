// SPDX-License-Identifier: Apache-2.0
#include "node/cpuinfo.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "node/archspec.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxLines = 256;
constexpr size_t kMaxValue = 256;
constexpr size_t kMaxFeatures = 1024;
constexpr size_t kMaxFeature = 64;

using Labels = std::map<std::string_view, std::string_view>;

/// The lines "label : value" before the first line without a colon.
Labels first_block(std::string_view text) {
  Labels labels;
  for (size_t line = 0; line < kMaxLines && !text.empty(); ++line) {
    size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    size_t colon = one.find(':');
    if (colon == std::string_view::npos) {
      if (!labels.empty()) break;
      continue;
    }
    labels[trim(one.substr(0, colon))] = trim(one.substr(colon + 1));
  }
  return labels;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string value_of(const Labels& labels, std::string_view name) {
  auto at = labels.find(name);
  if (at == labels.end() || at->second.size() > kMaxValue || !is_printable(at->second)) return {};
  return std::string(at->second);
}

std::vector<std::string> words_of(const Labels& labels, std::string_view name) {
  std::vector<std::string> out;
  auto at = labels.find(name);
  if (at == labels.end()) return out;
  for (std::string_view word : split_blank(at->second)) {
    if (out.size() == kMaxFeatures) break;
    if (word.size() <= kMaxFeature && is_printable(word)) out.emplace_back(word);
  }
  return out;
}

}  // namespace

Cpu read_cpuinfo(std::string_view text, std::string_view family) {
  Labels labels = first_block(text);
  Cpu cpu;
  cpu.model = value_of(labels, "model name");
  if (family == "x86_64" || family == "x86") {
    cpu.vendor = value_of(labels, "vendor_id");
    cpu.features = words_of(labels, "flags");
  } else if (family == "aarch64") {
    cpu.vendor = value_of(labels, "CPU implementer");
    cpu.part = value_of(labels, "CPU part");
    cpu.features = words_of(labels, "Features");
  } else if (family.starts_with("ppc")) {
    cpu.model = value_of(labels, "cpu");
    cpu.part = cpu.model.substr(0, cpu.model.find_first_of(" ,"));
  } else if (family == "riscv64") {
    cpu.part = value_of(labels, "uarch");
  }
  complete(family, cpu);
  return cpu;
}

}  // namespace berth::node
