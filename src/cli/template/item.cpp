// SPDX-License-Identifier: Apache-2.0
#include "cli/template/item.hpp"

#include <algorithm>

namespace berth::cli::syntax {
namespace {

void print_value(std::string& out, const json::Value& value, Item::Shape shape,
                 bool in_map = false);

void print_object(std::string& out, const json::Object& object, bool map) {
  out += map ? "map[" : "{";
  const char* before = "";
  for (const auto& [name, value] : object) {
    out += before;
    if (map) out += name + ":";
    print_value(out, value, Item::Shape::plain, map);
    before = " ";
  }
  out += map ? "]" : "}";
}

void print_value(std::string& out, const json::Value& value, Item::Shape shape, bool in_map) {
  if (value.is_null()) {
    out += shape == Item::Shape::map ? "map[]" : shape == Item::Shape::list ? "[]" : "<nil>";
  } else if (const std::string* text = value.string()) {
    out += *text;
  } else if (const json::Array* array = value.array()) {
    out += '[';
    const char* before = "";
    for (const json::Value& one : *array) {
      out += before;
      print_value(out, one, Item::Shape::plain);
      before = " ";
    }
    out += ']';
  } else if (const json::Object* object = value.object()) {
    // In our documents only maps can be empty, except for the elements of a set in Go.
    if (shape != Item::Shape::map) return print_object(out, *object, object->empty() && !in_map);
    json::Object sorted = *object;
    std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
    print_object(out, sorted, true);
  } else {
    json::append_compact(out, value);
  }
}

}  // namespace

Item make_item(json::Value value) {
  return {std::make_shared<const json::Value>(std::move(value)), Item::Shape::plain, false};
}

Item part_of(const Item& whole, const json::Value& part, Item::Shape shape) {
  return {std::shared_ptr<const json::Value>(whole.value, &part), shape, false};
}

Item missing_item() {
  Item item = make_item(nullptr);
  item.missing = true;
  return item;
}

std::string_view kind_of(const Item& item) {
  if (item.is_list()) return "a list";
  if (item.is_map()) return "an object";
  if (item->is_null()) return "nothing";
  if (item->string() != nullptr) return "a string";
  return item->get_if<bool>() != nullptr ? "true or false" : "a number";
}

bool is_true(const Item& item) {
  if (item->is_null()) return false;
  if (const auto* flag = item->get_if<bool>()) return *flag;
  if (const auto* number = item->get_if<int64_t>()) return *number != 0;
  if (const auto* number = item->get_if<double>()) return *number != 0;
  if (const std::string* text = item->string()) return !text->empty();
  if (const json::Array* array = item->array()) return !array->empty();
  // Go: a struct is true even when all of its members are zero.
  if (const json::Object* object = item->object()) {
    return item.shape != Item::Shape::map || !object->empty();
  }
  return true;  // a number beyond int64_t
}

std::string printed(const Item& item) {
  if (item.missing) return "<no value>";
  std::string text;
  print_value(text, *item, item.shape);
  return text;
}

std::vector<std::pair<std::string_view, const json::Value*>> sorted_members(const Item& item) {
  std::vector<std::pair<std::string_view, const json::Value*>> members;
  if (const json::Object* object = item->object()) {
    for (const auto& [name, value] : *object) members.emplace_back(name, &value);
  }
  std::ranges::sort(members, [](const auto& a, const auto& b) { return a.first < b.first; });
  return members;
}

}  // namespace berth::cli::syntax
