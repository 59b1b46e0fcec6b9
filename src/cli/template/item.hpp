// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/template/lexer.hpp"
#include "json/value.hpp"

/// Values while a template is executed. Pure.
namespace berth::cli::syntax {

/// The limit of one execution's output, and of one function's result.
constexpr size_t kMaxOutputBytes = size_t{16} << 20;

/// A value with properties that JSON lacks. Parts of the document are shared, not copied.
struct Item {
  enum class Shape { plain, map, list };
  std::shared_ptr<const json::Value> value;  ///< never null
  Shape shape = Shape::plain;
  bool missing = false;  ///< a map has no such entry: prints "<no value>"

  const json::Value& operator*() const { return *value; }
  const json::Value* operator->() const { return value.get(); }
  bool is_map() const { return value->object() != nullptr || shape == Shape::map; }
  bool is_list() const { return value->array() != nullptr || shape == Shape::list; }
};

Item make_item(json::Value value);

/// The item for a part of `whole`; it keeps the document alive.
Item part_of(const Item& whole, const json::Value& part, Item::Shape shape = Item::Shape::plain);

Item missing_item();

/// "a string", "a number", "an object", "a list", "nothing".
std::string_view kind_of(const Item& item);

bool is_true(const Item& item);

/// In the format of Go's fmt: {a b} for a struct, map[k:v], [a b], <nil>, <no value>.
std::string printed(const Item& item);

/// Members in the order of their names, as Go ranges over maps.
std::vector<std::pair<std::string_view, const json::Value*>> sorted_members(const Item& item);

/// Calls one of function_names(), but not "and" or "or", which do not evaluate all their arguments.
/// Errors: usage, at `place`.
Result<Item> call_function(std::string_view name, const std::vector<Item>& arguments, Place place);

/// Go's Sprintf.  Errors: usage (a width or text beyond kMaxOutputBytes).
Result<std::string> format_text(std::string_view format, const std::vector<Item>& arguments,
                                Place place);

}  // namespace berth::cli::syntax
