// SPDX-License-Identifier: Apache-2.0
// The only file that uses RapidJSON: its SAX reader (iterative, so that depth costs no stack) feeds
// our Document.
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
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/text.hpp"
#include "json/document.hpp"
#include "json/text.hpp"

namespace berth::json {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseInsituFlag |
                            rapidjson::kParseNumbersAsStringsFlag;

/// The reader's maximal look-ahead.
constexpr size_t kPadding = 16;

}  // namespace

/// Its functions have RapidJSON's names. Values that are not part of an array or an object yet are
/// on a stack.
class Builder {
 public:
  Builder(const Limits& limits, Document& document) : limits_(limits), document_(document) {
    waiting_.reserve(kExpected);
    names_.reserve(kExpected);
  }

  bool Null() { return add({}); }
  bool Bool(bool value) {
    Node node;
    node.kind = Node::Kind::boolean;
    node.boolean = value;
    return add(node);
  }
  // Every number comes here: RapidJSON's parser reads beyond its tables for "0." and 400 zeros. No
  // zero byte ends `text`.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    std::string_view digits(text, size);
    Node node;
    if (auto integer = parse_i64(digits)) {
      node.kind = Node::Kind::integer;
      node.integer = *integer;
    } else if (auto natural = parse_u64(digits)) {
      node.kind = Node::Kind::natural;
      node.natural = *natural;
    } else {
      node.kind = Node::Kind::real;
      node.real = std::strtod(std::string(digits).c_str(), nullptr);
      if (!std::isfinite(node.real)) return fail("a number out of range");
    }
    return add(node);
  }
  bool Int(int) { return fail("unexpected number"); }
  bool Uint(unsigned) { return fail("unexpected number"); }
  bool Int64(int64_t) { return fail("unexpected number"); }
  bool Uint64(uint64_t) { return fail("unexpected number"); }
  bool Double(double) { return fail("unexpected number"); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    Node node;
    node.kind = Node::Kind::string;
    node.text = {text, size};
    return add(node);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    names_.emplace_back(text, size);
    return true;
  }
  bool StartObject() { return open(); }
  bool StartArray() { return open(); }
  bool EndObject(rapidjson::SizeType size) {
    auto members = std::span(waiting_).last(size);
    for (size_t i = 0; i < size; ++i) members[i].member = names_[names_.size() - size + i];
    names_.resize(names_.size() - size);
    auto kept = keep_last_of_each_name(members);
    return kept && close(Node::Kind::object, size, *kept);
  }
  bool EndArray(rapidjson::SizeType size) { return close(Node::Kind::array, size, size); }

  const Node& root() const { return waiting_.front(); }
  const std::string& failure() const { return failure_; }

 private:
  bool fail(std::string text) {
    failure_ = std::move(text);
    return false;
  }
  bool add(const Node& node) {
    if (++count_ > limits_.max_values) return fail("more values than the limit allows");
    waiting_.push_back(node);
    return true;
  }
  bool open() { return ++depth_ <= limits_.max_depth || fail("nested too deeply"); }
  // Of the last `size` values only the first `kept` count.
  bool close(Node::Kind kind, size_t size, size_t kept) {
    --depth_;
    Node node = document_.close(kind, std::span(waiting_).last(size).first(kept));
    waiting_.resize(waiting_.size() - size);
    return add(node);
  }

  static constexpr size_t kFew = 16;
  static bool are_unique(std::span<const Node> members) {
    for (size_t i = 1; i < members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (members[i].member == members[j].member) return false;
      }
    }
    return true;
  }
  /// Returns how many are left, at the front; nothing if duplicates are not allowed.
  std::optional<size_t> keep_last_of_each_name(std::span<Node> members) {
    if (members.size() < 2 || (members.size() <= kFew && are_unique(members))) {
      return members.size();
    }
    std::unordered_map<std::string_view, size_t> first;
    first.reserve(members.size());
    size_t kept = 0;
    for (const Node& member : members) {
      auto [entry, added] = first.emplace(member.member, kept);
      if (!added && limits_.unique_names) {
        fail(quote(member.member) + " is given twice");
        return std::nullopt;
      }
      members[entry->second] = member;
      if (added) ++kept;
    }
    return kept;
  }

  static constexpr size_t kExpected = 64;

  const Limits& limits_;
  Document& document_;
  std::vector<Node> waiting_;
  std::vector<std::string_view> names_;
  size_t count_ = 0;
  size_t depth_ = 0;
  std::string failure_;
};

namespace {

std::string place(std::string_view text, size_t position) {
  position = std::min(position, text.size());
  std::string_view before = text.substr(0, position);
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  size_t start = before.rfind('\n');
  size_t column = start == std::string_view::npos ? position : position - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(std::max<size_t>(column, 1));
}

}  // namespace

Result<Document> parse_document(std::string_view text, std::string_view document,
                                const Limits& limits) {
  std::string name = escape_controls(document);
  if (text.size() > limits.max_bytes) {
    return make_error(Kind::corrupt, name + ": " + std::to_string(text.size()) +
                                         " bytes, more than the limit of " +
                                         std::to_string(limits.max_bytes));
  }
  // The reader checks for control characters only in a few places.
  if (size_t bad = find_foreign_byte(text); bad != std::string_view::npos) {
    return make_error(Kind::corrupt, name + ": " + place(text, bad + 1) + ": invalid JSON");
  }
  Document out;
  out.letters_.reserve(text.size() + kPadding);
  out.letters_ = text;
  out.letters_.resize(text.size() + kPadding);
  rapidjson::Reader reader;
  rapidjson::InsituStringStream stream(out.letters_.data());
  Builder builder(limits, out);
  rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, builder);
  if (!parsed.IsError() && stream.Tell() == text.size()) {
    out.root_ = builder.root();
    return out;
  }
  if (!builder.failure().empty()) {
    return make_error(Kind::corrupt, name + ": " + builder.failure());
  }
  size_t position = parsed.IsError() ? parsed.Offset() : stream.Tell();
  return make_error(Kind::corrupt, name + ": " + place(text, position + 1) + ": invalid JSON");
}

Result<Value> parse(std::string_view text, std::string_view document, const Limits& limits) {
  Document parsed = TRY(parse_document(text, document, limits));
  return parsed.to_value(parsed.root());
}

Value reparse(std::string_view text) {
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  return parse(text, "JSON of ours", {kAny, kAny, kAny}).value();
}

}  // namespace berth::json
