// SPDX-License-Identifier: Apache-2.0
// One table per struct drives reading and writing:
//
//   void fields(auto& v, Mount& m) {                    // found by argument-dependent look-up
//     v.required("destination", m.destination);
//     v.optional("source", m.source);
//     v.rest(m.rest);                                   // keeps unknown members (OCI, CDI)
//   }
//   auto mount = json::read<Mount>(text, "mount.json");
//   std::string text = json::write(*mount);
//
// Member types: bool, integers, double, std::string, Value, std::optional<T>, std::vector<T>,
// std::map<std::string, T>, structs with a table of their own, enums with names (base/names.hpp),
// and scalars with a string form:
//   Result<T> from_json_text(std::string_view text, std::type_identity<T>);
//   std::string to_json_text(const T& value);
// Errors name the JSON path: "config.json: mounts[3].destination: expected a string, got a number".
// By default unknown members are ignored; `v.strict()` in a table makes them an error that suggests
// the nearest name (for our own configuration).
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "json/path.hpp"
#include "json/text.hpp"
#include "json/value.hpp"

namespace berth::json {

class Reader;
class Writer;

/// Members of a document that no table names; written back unchanged.
using Rest = Object;

template <class T>
concept HasFields = requires(Reader& reader, T& value) {
  fields(reader, value);
};

template <class T>
concept HasText = requires(const T& value, std::string_view text) {
  { to_json_text(value) } -> std::convertible_to<std::string>;
  { from_json_text(text, std::type_identity<T>{}) } -> std::same_as<Result<T>>;
};

/// Fills a struct from one object, and moves its strings into the struct. Used only by tables.
/// Keeps the first error.
class Reader {
 public:
  /// The arguments have to outlive the reader.
  Reader(Object& members, const Path& path) : members_(members), path_(path) {}

  template <class T>
  void required(std::string_view name, T& member) {
    note(name);
    if (error_) return;
    Value* value = find(name);
    if (value == nullptr) {
      fail(name, "missing");
      return;
    }
    read_member(name, *value, member);
  }

  /// An absent or null member leaves `member` unchanged.
  template <class T>
  void optional(std::string_view name, T& member) {
    note(name);
    if (error_) return;
    Value* value = find(name);
    if (value != nullptr && !value->is_null()) read_member(name, *value, member);
  }

  /// Like optional() for reading; a Writer writes the member even if it is empty.
  template <class T>
  void always(std::string_view name, T& member) {
    optional(name, member);
  }

  void rest(Rest& rest) {
    if (error_) return;
    for (auto& member : members_) {
      if (!is_known(member.first)) rest.push_back(std::move(member));
    }
  }

  void strict() {
    if (error_) return;
    for (const auto& [name, value] : members_) {
      if (is_known(name)) continue;
      std::span<const std::string_view> known = known_names();
      auto near = nearest(name, {known.begin(), known.end()});
      fail(name,
           near ? "unknown member; did you mean '" + std::string(*near) + "'?" : "unknown member");
      return;
    }
  }

  /// For a check in a table, e.g. "expected an absolute path, got 'tmp'".
  void fail(std::string_view name, std::string text) {
    if (error_) return;
    std::string place = name.empty() ? path_.text() : path_.member(name).text();
    error_ = make_error(Kind::corrupt, place + ": " + std::move(text));
  }

  static constexpr bool reading() { return true; }
  std::optional<Error>& error() { return error_; }

  template <class T>
  static std::optional<Error> read_value(Value& value, const Path& path, T& out);

 private:
  // Starts after the member found last: members are usually in the order of their table.
  Value* find(std::string_view name) {
    for (size_t i = 0; i < members_.size(); ++i) {
      size_t at = next_ + i < members_.size() ? next_ + i : next_ + i - members_.size();
      if (members_[at].first != name) continue;
      next_ = at + 1;
      return &members_[at].second;
    }
    return nullptr;
  }
  void note(std::string_view name) {
    if (known_count_ < kFew) {
      few_known_[known_count_] = name;
    } else {
      if (known_count_ == kFew) known_.assign(few_known_.begin(), few_known_.end());
      known_.push_back(name);
    }
    ++known_count_;
  }
  std::span<const std::string_view> known_names() const {
    if (known_count_ > kFew) return known_;
    return std::span(few_known_).first(known_count_);
  }
  bool is_known(std::string_view key) const {
    auto names = known_names();
    return std::ranges::find(names, key) != names.end();
  }
  template <class T>
  void read_member(std::string_view name, Value& value, T& member) {
    error_ = read_value(value, path_.member(name), member);
  }

  static constexpr size_t kFew = 32;  // enough for most tables

  Object& members_;
  const Path& path_;
  size_t next_ = 0;
  size_t known_count_ = 0;
  std::array<std::string_view, kFew> few_known_;
  std::vector<std::string_view> known_;  // all of them, if there are more
  std::optional<Error> error_;
};

namespace detail {

inline Error type_error(const Path& path, std::string_view wanted, const Value& got) {
  return make_error(Kind::corrupt, path.text() + ": expected " + std::string(wanted) + ", got " +
                                       std::string(got.type_name()));
}
inline Error range_error(const Path& path, const std::string& number) {
  return make_error(Kind::corrupt, path.text() + ": " + number + " is out of range");
}

template <class T>
std::optional<Error> read_integer(const Value& value, const Path& path, T& out) {
  auto assign = [&](auto number) -> std::optional<Error> {
    if (!std::in_range<T>(number)) return range_error(path, std::to_string(number));
    out = static_cast<T>(number);
    return std::nullopt;
  };
  if (const auto* integer = value.get_if<int64_t>()) return assign(*integer);
  if (const auto* natural = value.get_if<uint64_t>()) return assign(*natural);
  return type_error(path, "an integer", value);
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsStringMap : std::false_type {};
template <class T>
struct IsStringMap<std::map<std::string, T>> : std::true_type {};

}  // namespace detail

template <class T>
std::optional<Error> Reader::read_value(Value& value, const Path& path, T& out) {
  using detail::type_error;
  if constexpr (std::is_same_v<T, Value>) {
    out = std::move(value);
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool* boolean = value.get_if<bool>();
    if (boolean == nullptr) return type_error(path, "true or false", value);
    out = *boolean;
    return std::nullopt;
  } else if constexpr (std::integral<T>) {
    return detail::read_integer(value, path, out);
  } else if constexpr (std::floating_point<T>) {
    if (const auto* real = value.get_if<double>()) {
      out = static_cast<T>(*real);
    } else if (const auto* integer = value.get_if<int64_t>()) {
      out = static_cast<T>(*integer);
    } else {
      return type_error(path, "a number", value);
    }
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, std::string>) {
    auto* text = value.get_if<std::string>();
    if (text == nullptr) return type_error(path, "a string", value);
    out = std::move(*text);
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, Digest> || HasNames<T> || HasText<T>) {
    if (value.string() == nullptr) return type_error(path, "a string", value);
    auto parsed = [&]() -> Result<T> {
      if constexpr (std::is_same_v<T, Digest>) {
        return Digest::parse(*value.string());
      } else if constexpr (HasNames<T>) {
        return parse_enum<T>(*value.string());
      } else {
        return from_json_text(*value.string(), std::type_identity<T>{});
      }
    }();
    if (!parsed.ok()) {
      Error error = std::move(parsed).error();
      error.what = path.text() + ": " + error.what;
      return error;
    }
    out = std::move(parsed).value();
    return std::nullopt;
  } else if constexpr (detail::IsOptional<T>::value) {
    if (value.is_null()) {
      out.reset();
      return std::nullopt;
    }
    return read_value(value, path, out.emplace());
  } else if constexpr (detail::IsVector<T>::value) {
    auto* array = value.get_if<Array>();
    if (array == nullptr) return type_error(path, "an array", value);
    out.clear();
    out.reserve(array->size());
    size_t i = 0;
    for (Value& one : *array) {
      typename T::value_type element{};
      auto error = read_value(one, path.element(i++), element);
      if (error) return error;
      out.push_back(std::move(element));
    }
    return std::nullopt;
  } else if constexpr (detail::IsStringMap<T>::value) {
    auto* members = value.get_if<Object>();
    if (members == nullptr) return type_error(path, "an object", value);
    out.clear();
    for (auto& [key, one] : *members) {
      auto error = read_value(one, path.entry(key), out[key]);
      if (error) return error;
    }
    return std::nullopt;
  } else {
    static_assert(HasFields<T>, "a type without a field table or a textual form");
    auto* members = value.get_if<Object>();
    if (members == nullptr) return type_error(path, "an object", value);
    Reader reader(*members, path);
    fields(reader, out);
    return std::move(reader.error());
  }
}

/// Writes one object from a struct. Used only by tables.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  void required(std::string_view name, T& member) {
    append_name(name);
    append(out_, member);
  }
  /// Omitted when empty: an optional without value, an empty string, vector or map, false, 0.
  template <class T>
  void optional(std::string_view name, T& member) {
    if (!is_empty(member)) required(name, member);
  }
  /// Written even when empty (an empty optional as null).
  template <class T>
  void always(std::string_view name, T& member) {
    required(name, member);
  }
  void rest(Rest& rest) {
    for (const auto& [name, value] : rest) {
      separate();
      append_string(out_, name);
      out_ += ':';
      append_compact(out_, value);
    }
  }
  void strict() {}
  void fail(std::string_view, const std::string&) {}
  static constexpr bool reading() { return false; }

  template <class T>
  static void append(std::string& out, const T& member) {
    if constexpr (std::is_same_v<T, Value>) {
      append_compact(out, member);
    } else if constexpr (std::is_same_v<T, bool>) {
      out += member ? "true" : "false";
    } else if constexpr (std::integral<T>) {
      out += std::to_string(member);
    } else if constexpr (std::floating_point<T>) {
      append_number(out, member);
    } else if constexpr (std::is_same_v<T, std::string>) {
      append_string(out, member);
    } else if constexpr (std::is_same_v<T, Digest>) {
      if (member.empty()) {
        out += "null";
      } else {
        append_string(out, member.text());
      }
    } else if constexpr (HasNames<T>) {
      append_string(out, enum_text(member));
    } else if constexpr (HasText<T>) {
      append_string(out, to_json_text(member));
    } else if constexpr (detail::IsOptional<T>::value) {
      if (member) {
        append(out, *member);
      } else {
        out += "null";
      }
    } else if constexpr (detail::IsVector<T>::value) {
      const char* before = "[";
      for (const auto& element : member) {
        out += std::exchange(before, ",");
        append(out, static_cast<const typename T::value_type&>(element));
      }
      out += member.empty() ? "[]" : "]";
    } else if constexpr (detail::IsStringMap<T>::value) {
      Writer entries(out);
      for (const auto& [key, value] : member) {
        entries.separate();
        append_string(out, key);
        out += ':';
        append(out, value);
      }
      entries.end();
    } else {
      static_assert(HasFields<T>, "a type without a field table or a textual form");
      Writer writer(out);
      fields(writer, const_cast<T&>(member));  // a Writer does not change its argument
      writer.end();
    }
  }

 private:
  void separate() {
    out_ += empty_ ? '{' : ',';
    empty_ = false;
  }
  void append_name(std::string_view name) {
    separate();
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void end() { out_ += empty_ ? "{}" : "}"; }

  template <class T>
  static bool is_empty(const T& member) {
    if constexpr (std::is_same_v<T, Value>) {
      return member.is_null();
    } else if constexpr (std::is_same_v<T, bool>) {
      return !member;
    } else if constexpr (std::is_arithmetic_v<T>) {
      return member == 0;
    } else if constexpr (detail::IsOptional<T>::value) {
      return !member.has_value();
    } else if constexpr (requires { member.empty(); }) {
      return member.empty();
    } else {
      return false;
    }
  }

  std::string& out_;
  bool empty_ = true;
};

/// Fills `out` from the members of `value`; members that `value` lacks stay unchanged.
template <class T>
std::optional<Error> fill(Value value, const Path& path, T& out) {
  return Reader::read_value(value, path, out);
}

/// Fills a T from a parsed value; `document` names it in errors.
template <class T>
Result<T> from_value(Value value, std::string_view document) {
  T out{};
  if (auto error = Reader::read_value(value, Path(document), out)) return std::move(*error);
  return out;
}

/// Parses `text` and fills a T. Errors: corrupt, with the JSON path.
template <class T>
Result<T> read(std::string_view text, std::string_view document, const Limits& limits = {}) {
  auto parsed = parse(text, document, limits);
  if (!parsed.ok()) return std::move(parsed).error();
  return from_value<T>(std::move(*parsed), document);
}

/// Compact for indent 0, else one member per line.
template <class T>
std::string write(const T& value, int indent = 0) {
  std::string out;
  Writer::append(out, value);
  return indent == 0 ? out : dump(reparse(out), indent);
}

template <class T>
Value to_value(const T& value) {
  return reparse(write(value));
}

}  // namespace berth::json
