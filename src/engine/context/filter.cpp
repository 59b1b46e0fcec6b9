// SPDX-License-Identifier: Apache-2.0
#include "engine/context/filter.hpp"

#include <regex.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::engine {
namespace {

Error unknown(const std::string& what, std::string_view word,
              const std::vector<std::string_view>& known) {
  std::vector<std::string> names(known.begin(), known.end());
  auto near = nearest(word, known);
  return make_error(Kind::usage, what + (near ? ", did you mean " + quote(*near) + "?"
                                              : "; there are: " + join(names, ", ")));
}

/// POSIX has no \d; glibc knows \w and \s, and other common syntax is the same.
std::string posix(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape && text[i + 1] == 'd') {
      out += "[0-9]";
    } else if (escape) {
      out += text.substr(i, 2);
    } else {
      out += text[i];
    }
    i += escape ? 1 : 0;
  }
  return out;
}

}  // namespace

Result<Filter> parse_filter(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == text.npos || trim(text.substr(0, equals)).empty()) {
    return make_error(Kind::usage, "expected KEY=VALUE");
  }
  return Filter{to_lower(trim(text.substr(0, equals))), std::string(trim(text.substr(equals + 1)))};
}

bool Filters::has(std::string_view key) const {
  return std::ranges::any_of(filters_, [&](const Filter& filter) { return filter.key == key; });
}

std::vector<std::string> Filters::values(std::string_view key) const {
  std::vector<std::string> found;
  for (const Filter& filter : filters_) {
    if (filter.key == key) found.push_back(filter.value);
  }
  return found;
}

Result<void> Filters::check_keys(const std::vector<std::string_view>& known) const {
  for (const Filter& filter : filters_) {
    if (std::ranges::find(known, filter.key) != known.end()) continue;
    return unknown("invalid filter " + quote(filter.key), filter.key, known);
  }
  return {};
}

Result<void> Filters::check_values(std::string_view key,
                                   const std::vector<std::string_view>& known) const {
  for (const std::string& value : values(key)) {
    if (std::ranges::find(known, value) != known.end()) continue;
    return unknown("invalid filter " + quote(std::string(key) + "=" + value), value, known);
  }
  return {};
}

bool Filters::fits(std::string_view key, const std::function<bool(const std::string&)>& fit) const {
  std::vector<std::string> wanted = values(key);
  return wanted.empty() || std::ranges::any_of(wanted, fit);
}

bool Filters::fits_labels(const std::map<std::string, std::string>& labels) const {
  for (const std::string& wanted : values("label")) {
    size_t equals = wanted.find('=');
    auto label = labels.find(wanted.substr(0, equals));
    if (label == labels.end()) return false;
    if (equals != wanted.npos && label->second != wanted.substr(equals + 1)) return false;
  }
  return true;
}

Result<std::optional<bool>> Filters::flag(std::string_view key) const {
  TRY(check_values(key, {"true", "false", "1", "0"}));
  std::vector<std::string> wanted = values(key);
  if (wanted.empty()) return std::optional<bool>();
  return std::optional<bool>(wanted.back() == "true" || wanted.back() == "1");
}

Result<Pattern> Pattern::parse(const std::string& text) {
  auto* compiled = new regex_t;
  Pattern pattern;
  pattern.source_ = text;
  int failure = ::regcomp(compiled, posix(text).c_str(), REG_EXTENDED | REG_NOSUB);
  if (failure != 0) {
    char reason[128];
    ::regerror(failure, compiled, reason, sizeof reason);
    delete compiled;
    return make_error(Kind::usage, "bad regular expression " + quote(text) + ": " + reason);
  }
  pattern.compiled_ = std::shared_ptr<const void>(compiled, [](const void* made) {
    auto* expression = static_cast<regex_t*>(const_cast<void*>(made));
    ::regfree(expression);
    delete expression;
  });
  return pattern;
}

bool Pattern::matches(const std::string& text) const {
  const auto* expression = static_cast<const regex_t*>(compiled_.get());
  return text == source_ || ::regexec(expression, text.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace berth::engine
