// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace berth::json {

class Value;
using Array = std::vector<Value>;
/// Members in the order of the document; if a name occurs twice, the last value counts, as in Go,
/// unless `Limits` makes that an error.
using Object = std::vector<std::pair<std::string, Value>>;

/// One JSON value. Integers keep 64 bits: an integer that fits is an int64_t, a larger one a
/// uint64_t.
class Value {
 public:
  using Storage =
      std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  Value() = default;
  Value(std::nullptr_t) {}                                         // NOLINT
  Value(bool value) : storage_(value) {}                           // NOLINT
  Value(int value) : storage_(int64_t{value}) {}                   // NOLINT
  Value(int64_t value) : storage_(value) {}                        // NOLINT
  Value(uint64_t value);                                           // NOLINT
  Value(double value) : storage_(value) {}                         // NOLINT
  Value(std::string value) : storage_(std::move(value)) {}         // NOLINT
  Value(std::string_view value) : storage_(std::string(value)) {}  // NOLINT
  Value(const char* value) : storage_(std::string(value)) {}       // NOLINT
  Value(Array value) : storage_(std::move(value)) {}               // NOLINT
  Value(Object value) : storage_(std::move(value)) {}              // NOLINT

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(storage_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&storage_);
  }
  const Object* object() const { return get_if<Object>(); }
  const Array* array() const { return get_if<Array>(); }
  const std::string* string() const { return get_if<std::string>(); }

  /// The member of an object, or nothing when it is missing or this is not an object.
  const Value* find(std::string_view name) const;
  /// Adds or replaces a member; a value that is not an object becomes one.
  void set(std::string_view name, Value value);

  /// For error messages: "a string", "an object", …
  std::string_view type_name() const;
  const Storage& storage() const { return storage_; }
  bool operator==(const Value&) const = default;

 private:
  Storage storage_ = nullptr;
};

struct Limits {
  size_t max_bytes = size_t{64} << 20;
  size_t max_depth = 64;          ///< nested arrays and objects
  size_t max_values = 4'000'000;  ///< of all kinds
  bool unique_names = false;      ///< duplicate names in an object are an error
};

/// Parses `text` as one document; only white space may surround it. `document` is the name for
/// errors: "config.json: line 3, column 7: …".
/// Errors: corrupt (syntax, invalid UTF-8, a limit).  RFC 8259
Result<Value> parse(std::string_view text, std::string_view document, const Limits& limits = {});

/// Parses output of dump(), of any size and depth.
Value reparse(std::string_view text);

/// Compact for indent 0, else one member per line. Invalid UTF-8 becomes U+FFFD.
std::string dump(const Value& value, int indent = 0);
void append_compact(std::string& out, const Value& value);

}  // namespace berth::json
