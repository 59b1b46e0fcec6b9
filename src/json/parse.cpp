// SPDX-License-Identifier: Apache-2.0
// The only file that sees RapidJSON: its SAX reader (iterative, so that depth costs no stack) feeds
// our Value.
#if defined(__SSE2__)
#define RAPIDJSON_SSE2
#elif defined(__ARM_NEON)
#define RAPIDJSON_NEON
#endif
#include <rapidjson/error/error.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/text.hpp"
#include "json/text.hpp"
#include "json/value.hpp"

namespace berth::json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

/// What the reader looks ahead at once.
constexpr size_t kPadding = 16;

/// The names of its functions are RapidJSON's. What is not yet part of an array or an object waits
/// on a stack, so each is made with its final size.
class Builder {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {
    values_.reserve(kExpected);
    names_.reserve(kExpected);
  }

  bool Null() { return add(); }
  bool Bool(bool value) { return add(value); }
  bool Int(int value) { return add(int64_t{value}); }
  bool Uint(unsigned value) { return add(uint64_t{value}); }
  bool Int64(int64_t value) { return add(value); }
  bool Uint64(uint64_t value) { return add(value); }
  bool Double(double value) { return add(value); }
  // Every number comes here: what RapidJSON makes of "0." and 400 zeros reads outside of its
  // tables. No zero byte ends `text`.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    std::string_view digits(text, size);
    if (auto number = parse_i64(digits)) return add(*number);
    if (auto number = parse_u64(digits)) return add(*number);
    double number = std::strtod(std::string(digits).c_str(), nullptr);
    return std::isfinite(number) ? add(number) : fail("a number out of range");
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return add(std::string(text, size));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    names_.emplace_back(text, size);
    return true;
  }
  bool StartObject() { return open(); }
  bool StartArray() { return open(); }
  bool EndObject(rapidjson::SizeType size) {
    Object object;
    object.reserve(size);
    auto value = values_.end() - size;
    for (auto name = names_.end() - size; name != names_.end(); ++name, ++value) {
      object.emplace_back(std::move(*name), std::move(*value));
    }
    names_.resize(names_.size() - size);
    if (!keep_last_of_each_name(object)) return false;
    return close(size, std::move(object));
  }
  bool EndArray(rapidjson::SizeType size) {
    Array array;
    array.reserve(size);
    std::move(values_.end() - size, values_.end(), std::back_inserter(array));
    return close(size, std::move(array));
  }

  Value take() { return std::move(values_.front()); }
  const std::string& failure() const { return failure_; }

 private:
  bool fail(std::string text) {
    failure_ = std::move(text);
    return false;
  }
  template <class... T>
  bool add(T&&... content) {
    if (++count_ > limits_.max_values) return fail("more values than the limit allows");
    values_.emplace_back(std::forward<T>(content)...);
    return true;
  }
  bool open() { return ++depth_ <= limits_.max_depth || fail("nested too deeply"); }
  template <class T>
  bool close(size_t size, T content) {
    --depth_;
    values_.resize(values_.size() - size);
    return add(std::move(content));
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

  static constexpr size_t kExpected = 64;

  const Limits& limits_;
  std::vector<Value> values_;
  std::vector<std::string> names_;
  size_t count_ = 0;
  size_t depth_ = 0;
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
  // The reader looks for control characters at a few places only.
  if (size_t bad = find_foreign_byte(text); bad != std::string_view::npos) {
    return make_error(Kind::corrupt, name + ": " + place(text, bad + 1) + ": invalid JSON");
  }
  std::string letters;
  letters.reserve(text.size() + kPadding);
  letters = text;
  letters.resize(text.size() + kPadding);
  rapidjson::Reader reader;
  rapidjson::InsituStringStream stream(letters.data());
  Builder builder(limits);
  rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, builder);
  if (!parsed.IsError() && stream.Tell() == text.size()) return builder.take();
  if (!builder.failure().empty()) {
    return make_error(Kind::corrupt, name + ": " + builder.failure());
  }
  size_t position = parsed.IsError() ? parsed.Offset() : stream.Tell();
  return make_error(Kind::corrupt, name + ": " + place(text, position + 1) + ": invalid JSON");
}

Value reparse(std::string_view text) {
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  return parse(text, "JSON of ours", {kAny, kAny, kAny}).value();
}

}  // namespace berth::json
