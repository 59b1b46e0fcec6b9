// SPDX-License-Identifier: Apache-2.0
// The only file that uses RapidJSON: its SAX reader, which is iterative, so that depth costs no
// stack, builds our Value.
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
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "json/text.hpp"
#include "json/value.hpp"

namespace berth::json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

/// How far the reader may read beyond the end of the text.
constexpr size_t kPadding = 16;

/// A handler for RapidJSON's reader, which prescribes the names of the functions. Values that are
/// not yet part of an array or an object are on a stack.
class Builder {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {
    waiting_.reserve(kExpected);
    names_.reserve(kExpected);
  }

  bool Null() { return add(nullptr); }
  bool Bool(bool value) { return add(value); }
  // Receives every number as a string: RapidJSON's own conversion reads beyond the end of its
  // tables for "0." and 400 zeros. `text` has no terminating zero.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    std::string_view digits(text, size);
    if (auto integer = parse_i64(digits)) return add(*integer);
    if (auto natural = parse_u64(digits)) return add(*natural);
    double real = std::strtod(std::string(digits).c_str(), nullptr);
    return std::isfinite(real) ? add(real) : fail("a number out of range");
  }
  bool Int(int) { return fail("unexpected number"); }
  bool Uint(unsigned) { return fail("unexpected number"); }
  bool Int64(int64_t) { return fail("unexpected number"); }
  bool Uint64(uint64_t) { return fail("unexpected number"); }
  bool Double(double) { return fail("unexpected number"); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return add(std::string_view(text, size));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    names_.emplace_back(text, size);
    return true;
  }
  bool StartObject() { return open(); }
  bool StartArray() { return open(); }
  bool EndObject(rapidjson::SizeType size) {
    auto names = std::span(names_).last(size);
    auto values = std::span(waiting_).last(size);
    bool unique = size < 2 || (size <= kFew && are_unique(names));
    std::unordered_map<std::string_view, size_t> first;
    Object members;
    members.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      auto known = unique ? first.end() : first.emplace(names[i], members.size()).first;
      if (known == first.end() || known->second == members.size()) {
        members.emplace_back(names[i], std::move(values[i]));
      } else if (limits_.unique_names) {
        return fail(quote(names[i]) + " is given twice");
      } else {
        members[known->second].second = std::move(values[i]);
      }
    }
    names_.resize(names_.size() - size);
    return close(size, std::move(members));
  }
  bool EndArray(rapidjson::SizeType size) {
    auto values = std::span(waiting_).last(size);
    return close(size, Array(std::move_iterator(values.begin()), std::move_iterator(values.end())));
  }

  Value& root() { return waiting_.front(); }
  const std::string& failure() const { return failure_; }

 private:
  bool fail(std::string text) {
    failure_ = std::move(text);
    return false;
  }
  // Constructs the value on the stack: moving a value costs as much as parsing a short string.
  template <class T>
  bool add(T&& value) {
    if (++count_ > limits_.max_values) return fail("more values than the limit allows");
    waiting_.emplace_back(std::forward<T>(value));
    return true;
  }
  bool open() { return ++depth_ <= limits_.max_depth || fail("nested too deeply"); }
  // Moves the last `size` waiting values into `container`.
  template <class T>
  bool close(size_t size, T container) {
    --depth_;
    waiting_.erase(waiting_.end() - static_cast<ptrdiff_t>(size), waiting_.end());
    return add(std::move(container));
  }

  static constexpr size_t kFew = 16;
  static bool are_unique(std::span<const std::string_view> names) {
    for (size_t i = 1; i < names.size(); ++i) {
      if (std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i) return false;
    }
    return true;
  }

  // The number of values of a config.json that wait at the same time; untouched pages cost nothing.
  static constexpr size_t kExpected = 1024;

  const Limits& limits_;
  std::vector<Value> waiting_;
  std::vector<std::string_view> names_;  // point into the text, which is parsed in place
  size_t count_ = 0;
  size_t depth_ = 0;
  std::string failure_;
};

std::string place(std::string_view text, size_t position) {
  position = std::min(position, text.size());
  std::string_view before = text.substr(0, position);
  auto line = 1 + std::ranges::count(before, '\n');
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
  // Check here, since the reader looks for control characters only in a few places.
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
  if (!parsed.IsError() && stream.Tell() == text.size()) return std::move(builder.root());
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
