// SPDX-License-Identifier: Apache-2.0
#include "engine/request/detach_keys.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kPasteBegins = "\x1b[200~";
constexpr std::string_view kPasteEnds = "\x1b[201~";

std::optional<char> key_byte(std::string_view key) {
  if (key.size() == 1) return key[0];
  constexpr std::string_view kControl = "ctrl-";
  if (key.size() != kControl.size() + 1 || !key.starts_with(kControl)) return std::nullopt;
  char c = key.back();
  if (c >= 'a' && c <= 'z') return static_cast<char>(c - 'a' + 1);
  if (c == '@' || (c >= '[' && c <= '_')) return static_cast<char>(c & 0x1f);
  return std::nullopt;
}

}  // namespace

Result<std::string> parse_detach_keys(std::string_view text) {
  std::string keys;
  if (text.empty()) return keys;
  for (std::string_view key : split(text, ',')) {
    auto byte = key_byte(key);
    if (!byte) {
      return make_error(Kind::usage, "invalid detach keys " + quote(std::string(text)) +
                                         ": expected keys such as 'a' or 'ctrl-p', with commas");
    }
    keys += *byte;
  }
  return keys;
}

void DetachKeys::look_for_paste(std::string_view bytes) {
  marks_.append(bytes);
  while (true) {
    std::string_view mark = pasting_ ? kPasteEnds : kPasteBegins;
    size_t at = marks_.find(mark);
    if (at == std::string::npos) break;
    marks_.erase(0, at + mark.size());
    pasting_ = !pasting_;
  }
  if (marks_.size() >= kPasteBegins.size()) {
    marks_.erase(0, marks_.size() - (kPasteBegins.size() - 1));
  }
}

DetachKeys::Typed DetachKeys::feed(std::string_view bytes) {
  if (keys_.empty()) return {std::string(bytes), false};
  look_for_paste(bytes);
  std::string all = keys_.substr(0, matched_) + std::string(bytes);
  matched_ = 0;
  if (pasting_) return {std::move(all), false};
  if (all.ends_with(keys_)) {
    all.resize(all.size() - keys_.size());
    return {std::move(all), true};
  }
  // The longest prefix of the keys that `all` ends with.
  for (size_t length = std::min(keys_.size() - 1, all.size()); length > 0; --length) {
    if (!all.ends_with(keys_.substr(0, length))) continue;
    matched_ = length;
    all.resize(all.size() - length);
    break;
  }
  return {std::move(all), false};
}

}  // namespace berth::engine
