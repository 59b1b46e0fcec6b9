// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <compare>

#include "base/text.hpp"
#include "cli/template/item.hpp"
#include "cli/template/syntax.hpp"

namespace berth::cli::syntax {
namespace {

using Arguments = std::vector<Item>;

struct Call {
  std::string_view name;
  const Arguments& arguments;
  Place place;

  Error fail(const std::string& text) const {
    return error_at(place, "'" + std::string(name) + "' " + text);
  }
  Result<std::string> text(size_t i) const {
    if (const std::string* value = arguments[i]->string()) return *value;
    return fail("expects a string, got " + std::string(kind_of(arguments[i])));
  }
  Result<int64_t> integer(size_t i) const {
    if (const auto* value = arguments[i]->get_if<int64_t>()) return *value;
    return fail("expects a whole number, got " + std::string(kind_of(arguments[i])));
  }
};

Result<Item> text_item(std::string text) {
  return make_item(std::move(text));
}

// ---- comparisons --------------------------------------------------------------------------------

/// Compares numbers by value, whatever their type. Nothing if `a` and `b` have no order.
std::optional<std::partial_ordering> order(const json::Value& a, const json::Value& b) {
  if (a.string() != nullptr && b.string() != nullptr) return *a.string() <=> *b.string();
  if (const auto* left = a.get_if<bool>()) {
    if (const auto* right = b.get_if<bool>()) return int{*left} <=> int{*right};
    return std::nullopt;
  }
  auto number = [](const json::Value& value) -> std::optional<long double> {
    if (const auto* n = value.get_if<int64_t>()) return static_cast<long double>(*n);
    if (const auto* n = value.get_if<uint64_t>()) return static_cast<long double>(*n);
    if (const auto* n = value.get_if<double>()) return static_cast<long double>(*n);
    return std::nullopt;
  };
  auto left = number(a);
  auto right = number(b);
  if (!left || !right) return std::nullopt;
  return *left <=> *right;
}

Result<bool> equal(const Call& call, const Item& a, const Item& b) {
  if (a->is_null() || b->is_null()) return a->is_null() && b->is_null();
  auto ordered = order(*a, *b);
  if (ordered) return *ordered == std::partial_ordering::equivalent;
  return call.fail("cannot compare " + std::string(kind_of(a)) + " with " +
                   std::string(kind_of(b)));
}

Result<Item> compare(const Call& call) {
  if (call.name == "eq") {
    for (size_t i = 1; i < call.arguments.size(); ++i) {
      if (TRY(equal(call, call.arguments[0], call.arguments[i]))) return make_item(true);
    }
    return make_item(false);
  }
  if (call.name == "ne") {
    return make_item(!TRY(equal(call, call.arguments[0], call.arguments[1])));
  }
  auto ordered = order(*call.arguments[0], *call.arguments[1]);
  if (!ordered || call.arguments[0]->get_if<bool>() != nullptr) {
    return call.fail("cannot order " + std::string(kind_of(call.arguments[0])) + " and " +
                     std::string(kind_of(call.arguments[1])));
  }
  bool is = call.name == "lt"   ? *ordered < 0
            : call.name == "le" ? *ordered <= 0
            : call.name == "gt" ? *ordered > 0
                                : *ordered >= 0;
  return make_item(is);
}

// ---- parts --------------------------------------------------------------------------------------

Result<Item> length(const Call& call) {
  const Item& item = call.arguments[0];
  uint64_t count = 0;
  if (const std::string* text = item->string()) {
    count = text->size();
  } else if (const json::Array* array = item->array()) {
    count = array->size();
  } else if (const json::Object* object = item->object()) {
    count = object->size();
  } else if (!item.is_list() && !item.is_map()) {
    return call.fail("cannot count " + std::string(kind_of(item)));
  }
  return make_item(static_cast<int64_t>(count));
}

Result<Item> element(const Call& call, const Item& item, size_t i) {
  if (item.is_map()) {
    std::string key = TRY(call.text(i));
    const json::Value* value = item->find(key);
    if (value != nullptr) return part_of(item, *value);
    // Go: the zero value of the type of the elements; for a map of strings an empty string.
    bool strings = item.shape == Item::Shape::map;
    for (const auto& [name, other] : sorted_members(item)) strings &= other->string() != nullptr;
    return strings ? make_item("") : missing_item();
  }
  const json::Array* array = item->array();
  const std::string* text = item->string();
  if (array == nullptr && text == nullptr && !item.is_list()) {
    return call.fail("cannot look into " + std::string(kind_of(item)));
  }
  int64_t at = TRY(call.integer(i));
  size_t size = array != nullptr ? array->size() : text != nullptr ? text->size() : 0;
  if (at < 0 || static_cast<uint64_t>(at) >= size) {
    return call.fail("has no element " + std::to_string(at) + " of " + std::to_string(size));
  }
  if (array != nullptr) return part_of(item, (*array)[static_cast<size_t>(at)]);
  return make_item(int64_t{static_cast<unsigned char>((*text)[static_cast<size_t>(at)])});
}

Result<Item> index(const Call& call) {
  Item item = call.arguments[0];
  for (size_t i = 1; i < call.arguments.size(); ++i) item = TRY(element(call, item, i));
  return item;
}

Result<Item> slice(const Call& call) {
  const json::Array* array = call.arguments[0]->array();
  const std::string* text = call.arguments[0]->string();
  if (array == nullptr && text == nullptr) {
    return call.fail("cannot cut " + std::string(kind_of(call.arguments[0])));
  }
  const size_t size = array != nullptr ? array->size() : text->size();
  int64_t bounds[2] = {0, static_cast<int64_t>(size)};
  for (size_t i = 1; i < call.arguments.size(); ++i) bounds[i - 1] = TRY(call.integer(i));
  if (bounds[0] < 0 || bounds[0] > bounds[1] || static_cast<uint64_t>(bounds[1]) > size) {
    return call.fail("has no part " + std::to_string(bounds[0]) + " to " +
                     std::to_string(bounds[1]) + " of " + std::to_string(size));
  }
  auto begin = static_cast<size_t>(bounds[0]);
  auto end = static_cast<size_t>(bounds[1]);
  if (text != nullptr) return make_item(text->substr(begin, end - begin));
  return make_item(json::Array(array->begin() + bounds[0], array->begin() + bounds[1]));
}

// ---- docker's -----------------------------------------------------------------------------------

Result<Item> join_strings(const Call& call) {
  const Item& list = call.arguments[0];
  if (!list.is_list()) return call.fail("expects a list, got " + std::string(kind_of(list)));
  const std::string separator = TRY(call.text(1));
  std::string text;
  if (list->array() == nullptr) return text_item(text);
  bool first = true;
  for (const json::Value& one : *list->array()) {
    if (one.string() == nullptr) return call.fail("expects a list of strings");
    text += (first ? "" : separator) + *one.string();
    first = false;
    if (text.size() > kMaxOutputBytes) break;
  }
  return text_item(std::move(text));
}

constexpr size_t kMaxParts = 1'000'000;

Result<Item> split_string(const Call& call) {
  const std::string text = TRY(call.text(0));
  const std::string separator = TRY(call.text(1));
  json::Array parts;
  if (text.size() / std::max<size_t>(separator.size(), 1) > kMaxParts) {
    return call.fail("makes more than a million strings");
  }
  if (separator.empty()) {  // Go: splits into characters
    for (size_t i = 0; i < text.size();) {
      size_t end = i + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      parts.emplace_back(text.substr(i, end - i));
      i = end;
    }
    return make_item(std::move(parts));
  }
  size_t begin = 0;
  for (size_t end = text.find(separator); end != text.npos; end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return make_item(std::move(parts));
}

char upper_of(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

Result<Item> change_case(const Call& call) {
  std::string text = TRY(call.text(0));
  if (call.name == "lower") return text_item(to_lower(text));
  bool word = false;  // the previous letter belongs to the same word
  for (char& c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
    if (call.name == "upper" || !word) c = upper_of(c);
    word = letter;
  }
  return text_item(std::move(text));
}

Result<Item> pad(const Call& call) {
  const std::string text = TRY(call.text(0));
  if (text.empty()) return text_item(text);  // as docker does
  int64_t before = TRY(call.integer(1));
  int64_t after = TRY(call.integer(2));
  constexpr auto kMost = static_cast<int64_t>(kMaxOutputBytes);
  if (before < 0 || after < 0) return call.fail("expects numbers of blanks, got a negative one");
  if (before > kMost || after > kMost) return call.fail("makes more than 16 MiB");
  return text_item(std::string(static_cast<size_t>(before), ' ') + text +
                   std::string(static_cast<size_t>(after), ' '));
}

Result<Item> truncate_text(const Call& call) {
  const std::string text = TRY(call.text(0));
  int64_t length = TRY(call.integer(1));
  if (length < 0) return call.fail("expects a number of bytes, got a negative one");
  return text_item(text.substr(0, static_cast<uint64_t>(length)));
}

Result<Item> to_json(const Call& call) {
  const Item& item = call.arguments[0];
  return text_item(json::dump(*item));
}

// ---- printing -----------------------------------------------------------------------------------

Result<Item> print(const Call& call) {
  bool lines = call.name == "println";
  std::string text;
  bool string_before = true;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    bool string = call.arguments[i]->string() != nullptr;
    // Go: Sprint puts a blank between two operands if neither is a string, Sprintln always does.
    if (i > 0 && (lines || (!string && !string_before))) text += ' ';
    text += printed(call.arguments[i]);
    if (text.size() > kMaxOutputBytes) break;
    string_before = string;
  }
  if (lines) text += '\n';
  return text_item(std::move(text));
}

Result<Item> print_formatted(const Call& call) {
  std::string format = TRY(call.text(0));
  Arguments rest(call.arguments.begin() + 1, call.arguments.end());
  return text_item(TRY(format_text(format, rest, call.place)));
}

Result<Item> negate(const Call& call) {
  return make_item(!is_true(call.arguments[0]));
}

struct Function {
  std::string_view name;
  size_t least, most;
  Result<Item> (*call)(const Call&);
};
constexpr size_t kAny = SIZE_MAX;
constexpr Function kFunctions[] = {
    {"eq", 2, kAny, compare},
    {"ge", 2, 2, compare},
    {"gt", 2, 2, compare},
    {"index", 1, kAny, index},
    {"join", 2, 2, join_strings},
    {"json", 1, 1, to_json},
    {"le", 2, 2, compare},
    {"len", 1, 1, length},
    {"lower", 1, 1, change_case},
    {"lt", 2, 2, compare},
    {"ne", 2, 2, compare},
    {"not", 1, 1, negate},
    {"pad", 3, 3, pad},
    {"print", 0, kAny, print},
    {"printf", 1, kAny, print_formatted},
    {"println", 0, kAny, print},
    {"slice", 1, 3, slice},
    {"split", 2, 2, split_string},
    {"title", 1, 1, change_case},
    {"truncate", 2, 2, truncate_text},
    {"upper", 1, 1, change_case},
};

}  // namespace

const std::vector<std::string_view>& function_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all{"and", "or"};
    for (const Function& function : kFunctions) all.push_back(function.name);
    return all;
  }();
  return names;
}

Result<Item> call_function(std::string_view name, const std::vector<Item>& arguments, Place place) {
  const Function* function = std::ranges::find(kFunctions, name, &Function::name);
  Call call{name, arguments, place};
  if (arguments.size() < function->least || arguments.size() > function->most) {
    size_t wanted = arguments.size() < function->least ? function->least : function->most;
    std::string bound = function->least == function->most    ? ""
                        : arguments.size() < function->least ? "at least "
                                                             : "at most ";
    return call.fail("takes " + bound + std::to_string(wanted) +
                     (wanted == 1 ? " argument" : " arguments") + ", got " +
                     std::to_string(arguments.size()));
  }
  Item result = TRY(function->call(call));
  bool long_text = result->string() != nullptr && result->string()->size() > kMaxOutputBytes;
  if (long_text) return call.fail("makes more than 16 MiB");
  return result;
}

}  // namespace berth::cli::syntax
