// SPDX-License-Identifier: Apache-2.0
#include "yaml/read.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <charconv>
#include <memory>
#include <set>

#include "base/text.hpp"

namespace berth::yaml {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<uint64_t> parse_digits(std::string_view digits, int base) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  auto [at, error] = std::from_chars(digits.data(), end, value, base);
  if (digits.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

/// Parses a number without its sign. A leading zero means octal, as in Go, because CDI files are
/// written for Go's readers: "fileMode: 0666".
std::optional<uint64_t> parse_magnitude(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') {
    switch (text[1]) {
      case 'x':
        return parse_digits(text.substr(2), 16);
      case 'o':
        return parse_digits(text.substr(2), 8);
      case 'b':
        return parse_digits(text.substr(2), 2);
      default:
        return parse_digits(text.substr(1), 8);
    }
  }
  return parse_digits(text, 10);
}

std::optional<json::Value> parse_integer(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  auto value = parse_magnitude(digits);
  if (!value) return std::nullopt;
  if (!negative) return json::Value(*value);
  if (*value > uint64_t{1} << 63) return std::nullopt;
  return json::Value(static_cast<int64_t>(-*value));
}

std::optional<json::Value> parse_null(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return json::Value();
  }
  return std::nullopt;
}

std::optional<json::Value> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return json::Value(true);
  if (text == "false" || text == "False" || text == "FALSE") return json::Value(false);
  return std::nullopt;
}

/// The value of a plain scalar; a string if it is nothing else. A number that does not fit or has a
/// fraction stays a string: a reader that expects a number reports an error, and "1.0" is usually a
/// version. YAML 1.2.2, 10.3.2
json::Value resolve(std::string_view text) {
  if (auto value = parse_null(text)) return *value;
  if (auto value = parse_bool(text)) return *value;
  if (auto value = parse_integer(text)) return *value;
  return text;
}

/// The value of `text` as a "str", "int", "bool" or "null". Nothing if `text` is not valid for that
/// type.
std::optional<json::Value> resolve_as(std::string_view type, std::string_view text) {
  if (type == "str") return json::Value(text);
  if (type == "int") return parse_integer(text);
  if (type == "bool") return parse_bool(text);
  if (type == "null") return parse_null(text);
  return std::nullopt;
}

constexpr std::string_view kCoreTags = "tag:yaml.org,2002:";

/// libyaml's parser with its input.
class Source {
 public:
  explicit Source(std::string_view text) {
    ready_ = yaml_parser_initialize(&parser_) == 1;
    if (!ready_) return;
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~Source() {
    if (ready_) yaml_parser_delete(&parser_);
  }
  Source(Source&&) = delete;

  bool next(yaml_event_t& event) { return ready_ && yaml_parser_parse(&parser_, &event) == 1; }
  const yaml_parser_t& parser() const { return parser_; }

 private:
  yaml_parser_t parser_{};
  bool ready_ = false;
};

/// One event of the parser; frees it in the destructor.
struct Event {
  yaml_event_t raw{};
  bool filled = false;
  Event() = default;
  ~Event() {
    if (filled) yaml_event_delete(&raw);
  }
  Event(Event&&) = delete;
};

std::string_view view(const yaml_char_t* text) {
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

/// Builds values from events. It has an explicit stack, so that nesting in the input does not cause
/// recursion.
class Builder {
 public:
  Builder(std::string_view text, std::string_view document, const json::Limits& limits)
      : source_(text), document_(document), limits_(limits) {}

  Result<json::Value> run() {
    while (true) {
      Event event;
      event.filled = source_.next(event.raw);
      if (!event.filled) return syntax_error();
      if (event.raw.type == YAML_STREAM_END_EVENT) break;
      TRY(take(event.raw));
    }
    if (!root_) return make_error(Kind::corrupt, fmt::format("{}: no document in it", document_));
    return std::move(*root_);
  }

 private:
  struct Open {
    json::Value value;
    std::set<std::string> keys;
    std::optional<std::string> key;  ///< the key for the next value
  };

  Error fault(const yaml_mark_t& mark, std::string_view text) const {
    return make_error(Kind::corrupt, fmt::format("{}: line {}, column {}: {}", document_,
                                                 mark.line + 1, mark.column + 1, text));
  }
  Error syntax_error() const {
    const yaml_parser_t& parser = source_.parser();
    if (parser.error == YAML_MEMORY_ERROR) {
      return make_error(Kind::io, fmt::format("{}: out of memory", document_));
    }
    bool of_bytes = parser.error == YAML_READER_ERROR;
    const char* problem = parser.problem == nullptr ? "no YAML" : parser.problem;
    return fault(of_bytes ? parser.mark : parser.problem_mark, escape_controls(problem));
  }

  Result<void> take(const yaml_event_t& event) {
    const yaml_mark_t& mark = event.start_mark;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (root_) return fault(mark, "a second document");
        if (event.data.document_start.tag_directives.start !=
            event.data.document_start.tag_directives.end) {
          return fault(mark, "%TAG is not allowed");
        }
        return {};
      case YAML_ALIAS_EVENT:
        return fault(mark, "aliases are not allowed");
      case YAML_SCALAR_EVENT:
        return take_scalar(event);
      case YAML_SEQUENCE_START_EVENT: {
        const auto& data = event.data.sequence_start;
        return open(mark, data.anchor, data.tag, "seq", json::Array{});
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& data = event.data.mapping_start;
        return open(mark, data.anchor, data.tag, "map", json::Object{});
      }
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close(mark);
      default:
        return {};
    }
  }

  bool wants_key() const {
    return !stack_.empty() && stack_.back().value.object() != nullptr && !stack_.back().key;
  }

  Result<void> count(const yaml_mark_t& mark, const yaml_char_t* anchor) {
    if (anchor != nullptr) return fault(mark, "anchors are not allowed");
    if (++values_ > limits_.max_values) return fault(mark, "too many values");
    return {};
  }

  Result<void> open(const yaml_mark_t& mark, const yaml_char_t* anchor, const yaml_char_t* tag,
                    std::string_view own_tag, json::Value value) {
    TRY(count(mark, anchor));
    if (tag != nullptr && view(tag) != std::string(kCoreTags) + std::string(own_tag)) {
      return fault(mark, "tag " + quote(view(tag)) + " is not allowed");
    }
    if (wants_key()) return fault(mark, "a key has to be a scalar");
    if (stack_.size() >= limits_.max_depth) return fault(mark, "nested too deeply");
    stack_.push_back({std::move(value), {}, std::nullopt});
    return {};
  }

  Result<void> close(const yaml_mark_t& mark) {
    json::Value value = std::move(stack_.back().value);
    stack_.pop_back();
    return place(mark, std::move(value));
  }

  Result<void> take_scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    const yaml_mark_t& mark = event.start_mark;
    TRY(count(mark, data.anchor));
    std::string text(reinterpret_cast<const char*>(data.value), data.length);
    if (wants_key()) return take_key(mark, data.tag, std::move(text));
    std::string_view tag = view(data.tag);
    if (tag.empty() || tag == "!") {
      // The tag "!" means that a plain scalar is a string.
      bool plain = tag.empty() && data.plain_implicit == 1;
      return place(mark, plain ? resolve(text) : json::Value(std::move(text)));
    }
    if (!tag.starts_with(kCoreTags)) return fault(mark, "tag " + quote(tag) + " is not allowed");
    auto value = resolve_as(tag.substr(kCoreTags.size()), text);
    if (!value) return fault(mark, quote(text) + " is not what tag " + quote(tag) + " says");
    return place(mark, std::move(*value));
  }

  Result<void> take_key(const yaml_mark_t& mark, const yaml_char_t* tag, std::string text) {
    if (tag != nullptr) return fault(mark, "a key has no tag");
    if (text == "<<") return fault(mark, "merge keys are not allowed");
    Open& top = stack_.back();
    if (!top.keys.insert(text).second) return fault(mark, quote(text) + " is given twice");
    top.key = std::move(text);
    return {};
  }

  Result<void> place(const yaml_mark_t& mark, json::Value value) {
    if (stack_.empty()) {
      if (root_) return fault(mark, "a second document");
      root_ = std::move(value);
      return {};
    }
    Open& top = stack_.back();
    if (auto* array = top.value.get_if<json::Array>()) {
      array->push_back(std::move(value));
    } else {
      top.value.get_if<json::Object>()->emplace_back(std::move(*top.key), std::move(value));
      top.key.reset();
    }
    return {};
  }

  Source source_;
  std::string_view document_;
  const json::Limits& limits_;
  std::vector<Open> stack_;
  std::optional<json::Value> root_;
  size_t values_ = 0;
};

}  // namespace

Result<json::Value> parse(std::string_view text, std::string_view document,
                          const json::Limits& limits) {
  if (text.size() > limits.max_bytes) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: larger than {}", document, human_bytes(limits.max_bytes)));
  }
  return Builder(text, document, limits).run();
}

}  // namespace berth::yaml
