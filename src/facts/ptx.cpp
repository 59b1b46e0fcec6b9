// SPDX-License-Identifier: Apache-2.0
#include "facts/ptx.hpp"

#include <algorithm>

namespace berth::facts {
namespace {

constexpr std::string_view kBlank = " \t\r\n", kDigits = "0123456789";

/// Removes blanks and comments from the front of `text`.
void skip_blank(std::string_view& text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    std::string_view end = text.starts_with("//") ? "\n" : text.starts_with("/*") ? "*/" : "";
    if (end.empty()) return;
    size_t at = text.find(end, 2);
    text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  }
}

/// Removes `word` and blanks from the front of `text`.
bool take(std::string_view& text, std::string_view word) {
  skip_blank(text);
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::string_view take_number(std::string_view& text) {
  constexpr size_t kLongest = 3;
  std::string_view number = text.substr(0, text.find_first_not_of(kDigits));
  text.remove_prefix(number.size());
  return number.size() > kLongest ? std::string_view() : number;
}

}  // namespace

std::optional<GpuCode> ptx_target(std::string_view text) {
  if (!take(text, ".version")) return std::nullopt;
  skip_blank(text);
  std::string_view major = take_number(text);
  if (!take(text, ".")) return std::nullopt;
  std::string_view minor = take_number(text);
  if (major.empty() || minor.empty() || !take(text, ".target") || !take(text, "sm_")) {
    return std::nullopt;
  }
  std::string arch(take_number(text));
  if (arch.empty()) return std::nullopt;
  if (!text.empty() && (text[0] == 'a' || text[0] == 'f')) arch += text[0];
  return GpuCode{GpuCode::Kind::ptx, arch, std::string(major) + "." + std::string(minor)};
}

}  // namespace berth::facts
