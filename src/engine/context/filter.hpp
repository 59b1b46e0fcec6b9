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

/// docker's --filter KEY=VALUE, as lists, events and prune have it: of several values of a key one
/// has to fit, of several keys all.
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

  /// Errors: usage (a key that is none of `known`, with the nearest).
  Result<void> check_keys(const std::vector<std::string_view>& known) const;
  /// Errors: usage (a value of `key` that is none of `known`, with the nearest).
  Result<void> check_values(std::string_view key, const std::vector<std::string_view>& known) const;

  /// True where `key` has no values, or one of them fits.
  bool fits(std::string_view key, const std::function<bool(const std::string&)>& fit) const;

  /// Of "label" all have to fit, as docker has it: "K" or "K=V".
  bool fits_labels(const std::map<std::string, std::string>& labels) const;

  /// "true" and "1" against "false" and "0"; nothing where `key` is absent.
  /// Errors: usage.
  Result<std::optional<bool>> flag(std::string_view key) const;

 private:
  std::vector<Filter> filters_;
};

/// An extended regular expression that may match anywhere in a text; \d, \w and \s are known.
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
