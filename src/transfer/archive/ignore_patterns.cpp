// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/ignore_patterns.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxPatterns = 10'000;

/// The text behind a '[' class and whether `c` is in it; nothing if the class does not end.
struct Class {
  std::string_view rest;
  bool holds = false;
};
std::optional<Class> match_class(std::string_view pattern, char c) {
  bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool holds = false;
  for (bool first = true;; first = false) {
    if (pattern.empty()) return std::nullopt;
    if (pattern[0] == ']' && !first) return Class{pattern.substr(1), holds != negated};
    auto take = [&]() -> std::optional<char> {
      if (pattern.starts_with('\\')) pattern.remove_prefix(1);
      if (pattern.empty()) return std::nullopt;
      char taken = pattern[0];
      pattern.remove_prefix(1);
      return taken;
    };
    auto low = take();
    if (!low) return std::nullopt;
    auto high = low;
    if (pattern.starts_with('-')) {
      pattern.remove_prefix(1);
      high = take();
      if (!high) return std::nullopt;
    }
    holds = holds || (*low <= c && c <= *high);
  }
}

/// Matches one name with one part of a pattern, in linear space and at most the product of both
/// lengths in time: a star is only retried at its own place.
bool match_name(std::string_view pattern, std::string_view name) {
  std::optional<std::string_view> star;  // the pattern behind the last '*'
  std::string_view from;                 // the name where that began
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = pattern;
      from = name;
      continue;
    }
    if (pattern.empty() && name.empty()) return true;
    std::string_view rest = pattern;
    bool same = false;
    if (!pattern.empty() && !name.empty()) {
      rest.remove_prefix(1);
      if (pattern[0] == '[') {
        auto found = match_class(rest, name[0]);
        same = found && found->holds;
        if (found) rest = found->rest;
      } else if (pattern[0] == '\\' && !rest.empty()) {
        same = rest[0] == name[0];
        rest.remove_prefix(1);
      } else {
        same = pattern[0] == '?' || pattern[0] == name[0];
      }
    }
    if (same) {
      pattern = rest;
      name.remove_prefix(1);
      continue;
    }
    if (!star || from.empty()) return false;
    from.remove_prefix(1);
    name = from;
    pattern = *star;
  }
}

/// Whether the pattern matches the path or a directory above it. As with names, a "**" is only
/// retried at its own place.
bool match_path(const std::vector<std::string>& parts, const std::vector<std::string_view>& names) {
  std::optional<size_t> stars;  // the part behind the last "**"
  size_t part = 0, name = 0, from = 0;
  while (part < parts.size()) {
    if (parts[part] == "**") {
      if (part + 1 == parts.size()) return name < names.size();
      stars = ++part;
      from = name;
    } else if (name < names.size() && match_name(parts[part], names[name])) {
      ++part;
      ++name;
    } else {
      if (!stars || from >= names.size()) return false;
      name = ++from;
      part = *stars;
    }
  }
  return true;
}

bool has_whole_classes(std::string_view part) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\') {
      ++i;
    } else if (part[i] == '[') {
      auto found = match_class(part.substr(i + 1), 'a');
      if (!found) return false;
      i = part.size() - found->rest.size() - 1;
    }
  }
  return true;
}

}  // namespace

Result<IgnorePatterns> IgnorePatterns::parse(std::string_view text) {
  IgnorePatterns ignore;
  uint32_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.starts_with('#')) continue;
    line = trim(line);
    if (line.empty()) continue;
    Pattern pattern;
    pattern.exception = line.starts_with('!');
    if (pattern.exception) line = trim(line.substr(1));
    for (std::string_view part : split(line, '/')) {
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        if (!pattern.parts.empty()) pattern.parts.pop_back();
        continue;
      }
      if (!has_whole_classes(part)) {
        return make_error(Kind::usage, fmt::format("line {}: '[' without its ']'", number));
      }
      pattern.parts.emplace_back(part);
    }
    if (pattern.parts.empty()) continue;
    if (ignore.patterns_.size() == kMaxPatterns) {
      return make_error(Kind::usage, fmt::format("more than {} patterns", kMaxPatterns));
    }
    ignore.has_exceptions_ = ignore.has_exceptions_ || pattern.exception;
    ignore.patterns_.push_back(std::move(pattern));
  }
  return ignore;
}

bool IgnorePatterns::ignores(std::string_view path) const {
  std::vector<std::string_view> names = split(path, '/');
  bool ignored = false;
  for (const Pattern& pattern : patterns_) {
    if (pattern.exception != ignored) continue;  // it would change nothing
    if (match_path(pattern.parts, names)) ignored = !pattern.exception;
  }
  return ignored;
}

}  // namespace berth::transfer
