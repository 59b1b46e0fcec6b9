// SPDX-License-Identifier: Apache-2.0
// The only file that sees RapidJSON: its SAX reader (iterative, so that depth costs no stack) feeds
// our Value.
#include <rapidjson/error/error.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "base/text.hpp"
#include "json/value.hpp"

namespace berth::json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

/// The names of its functions are RapidJSON's.
class Builder {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {}

  bool Null() { return add(Value()); }
  bool Bool(bool value) { return add(Value(value)); }
  bool Int(int value) { return add(Value(int64_t{value})); }
  bool Uint(unsigned value) { return add(Value(uint64_t{value})); }
  bool Int64(int64_t value) { return add(Value(value)); }
  bool Uint64(uint64_t value) { return add(Value(value)); }
  bool Double(double value) { return add(Value(value)); }
  // Every number comes here: what RapidJSON makes of "0." and 400 zeros reads outside of its
  // tables. A zero byte ends `text`.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    std::string_view digits(text, size);
    if (auto number = parse_i64(digits)) return add(Value(*number));
    if (auto number = parse_u64(digits)) return add(Value(*number));
    double number = std::strtod(text, nullptr);
    return std::isfinite(number) ? add(Value(number)) : fail("a number out of range");
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return add(Value(std::string(text, size)));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    open_.back().key.assign(text, size);
    return true;
  }
  bool StartObject() { return open(Value(Object{})); }
  bool StartArray() { return open(Value(Array{})); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  Value take() { return std::move(root_); }
  const std::string& failure() const { return failure_; }

 private:
  struct Open {
    Value value;
    std::string key;
  };

  bool fail(std::string text) {
    failure_ = std::move(text);
    return false;
  }
  bool add(Value value) {
    if (++values_ > limits_.max_values) return fail("more values than the limit allows");
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& top = open_.back();
    if (auto* array = top.value.get_if<Array>()) {
      array->push_back(std::move(value));
    } else {
      top.value.get_if<Object>()->emplace_back(std::move(top.key), std::move(value));
    }
    return true;
  }
  bool open(Value value) {
    if (open_.size() >= limits_.max_depth) return fail("nested too deeply");
    open_.push_back(Open{std::move(value), {}});
    return true;
  }
  bool close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    auto* object = value.get_if<Object>();
    if (object != nullptr && !keep_last_of_each_name(*object)) return false;
    return add(std::move(value));
  }
  static constexpr size_t kFew = 16;
  static bool are_unique(const Object& object) {
    for (size_t i = 1; i < object.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (object[i].first == object[j].first) return false;
      }
    }
    return true;
  }
  bool keep_last_of_each_name(Object& object) {
    if (object.size() < 2 || (object.size() <= kFew && are_unique(object))) return true;
    std::unordered_map<std::string_view, size_t> first;
    first.reserve(object.size());
    std::vector<bool> repeated(object.size());
    bool any = false;
    for (size_t i = 0; i < object.size(); ++i) {
      auto [entry, added] = first.emplace(object[i].first, i);
      if (added) continue;
      if (limits_.unique_names) return fail(quoted(object[i].first) + " comes twice");
      object[entry->second].second = std::move(object[i].second);
      repeated[i] = any = true;
    }
    if (!any) return true;
    Object unique;
    for (size_t i = 0; i < object.size(); ++i) {
      if (!repeated[i]) unique.push_back(std::move(object[i]));
    }
    object = std::move(unique);
    return true;
  }

  const Limits& limits_;
  Value root_;
  std::vector<Open> open_;
  size_t values_ = 0;
  std::string failure_;
};

std::string place(std::string_view text, size_t position) {
  position = std::min(position, text.size());
  std::string_view before = text.substr(0, position);
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  size_t start = before.rfind('\n');
  size_t column = start == std::string_view::npos ? position : position - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(std::max<size_t>(column, 1));
}

}  // namespace

Result<Value> parse(std::string_view text, std::string_view document, const Limits& limits) {
  std::string name = escape_controls(document);
  if (text.size() > limits.max_bytes) {
    return make_error(Kind::corrupt, name + ": " + std::to_string(text.size()) +
                                         " bytes, more than the limit of " +
                                         std::to_string(limits.max_bytes));
  }
  Builder builder(limits);
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, builder);
  // The stream ends at a zero byte, the document does not.
  if (!parsed.IsError() && stream.Tell() == text.size()) return builder.take();
  if (!builder.failure().empty()) {
    return make_error(Kind::corrupt, name + ": " + builder.failure());
  }
  size_t position = parsed.IsError() ? parsed.Offset() : stream.Tell();
  return make_error(Kind::corrupt, name + ": " + place(text, position + 1) + ": invalid JSON");
}

}  // namespace berth::json
