// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// docker's --filter KEY=VALUE for lists, events and prune: every key must match, with any one of
/// its values; the key "label" with all of them.
namespace berth::engine {

struct Filter {
  std::string key;  ///< lower case
  std::string value;
};

/// Errors: usage ("expected KEY=VALUE").
Result<Filter> parse_filter(std::string_view text);

class Filters {
 public:
  Filters() = default;
  explicit Filters(std::vector<Filter> filters) : filters_(std::move(filters)) {}

  bool empty() const { return filters_.empty(); }
  bool has(std::string_view key) const;
  std::vector<std::string> values(std::string_view key) const;

  /// Errors: usage (a key that is not in `known`; suggests the nearest one).
  Result<void> check_keys(const std::vector<std::string_view>& known) const;
  /// Errors: usage (a value of `key` that is not in `known`; suggests the nearest one).
  Result<void> check_values(std::string_view key, const std::vector<std::string_view>& known) const;

  /// True if `key` has no values, or `fit` accepts one of them.
  bool fits(std::string_view key, const std::function<bool(const std::string&)>& fit) const;

  /// Whether all values of "label" match, as with docker: "K" or "K=V".
  bool fits_labels(const std::map<std::string, std::string>& labels) const;

  /// True for "true" and "1", false for "false" and "0"; nothing if `key` is absent.
  /// Errors: usage.
  Result<std::optional<bool>> flag(std::string_view key) const;

 private:
  std::vector<Filter> filters_;
};

/// An extended regular expression that may match anywhere in a string; \d, \w and \s are supported.
/// regcomp(3)
class Pattern {
 public:
  /// Errors: usage, with the C library's reason.
  static Result<Pattern> parse(const std::string& text);
  bool matches(const std::string& text) const;

 private:
  std::string source_;
  std::shared_ptr<const void> compiled_;
};

}  // namespace berth::engine
