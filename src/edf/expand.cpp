// SPDX-License-Identifier: Apache-2.0
#include "edf/expand.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::edf {
namespace {

constexpr size_t kMaxBytes = size_t{128} << 10;
constexpr const char* kForms = "${NAME}, ${NAME:-DEFAULT}, or $$ for a dollar sign";

bool starts_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool is_name(std::string_view text) {
  return !text.empty() && starts_name(text[0]) &&
         std::ranges::all_of(text, [](char c) { return starts_name(c) || (c >= '0' && c <= '9'); });
}

Error not_readable(std::string_view text) {
  return make_error(Kind::usage, "cannot read the variable in " + quote(text), kForms);
}

/// `inside`: the text between "${" and "}".
Result<std::string_view> value_of(std::string_view inside, const LookUp& look_up) {
  size_t mark = inside.find(":-");
  std::string_view name = inside.substr(0, mark);
  bool has_default = mark != std::string_view::npos;
  std::string_view otherwise = has_default ? inside.substr(mark + 2) : "";
  // A default is a text: one that seems to name a variable would be cut at that one's '}'.
  if (!is_name(name) || otherwise.find("${") != std::string_view::npos) {
    return not_readable("${" + std::string(inside) + "}");
  }
  auto value = look_up(name);
  if (has_default) return value && !value->empty() ? *value : otherwise;
  if (value) return *value;
  return make_error(Kind::usage, "the variable " + quote(name) + " is not set",
                    "${" + std::string(name) + ":-} where it may be missing");
}

}  // namespace

Result<std::string> expand(std::string_view text, const LookUp& look_up) {
  const std::string_view whole = text;
  if (whole.find('\0') != std::string_view::npos) {
    return make_error(Kind::usage, quote(whole) + " has a NUL in it");
  }
  std::string out;
  for (size_t dollar = text.find('$'); dollar != text.npos; dollar = text.find('$')) {
    out += text.substr(0, dollar);
    text.remove_prefix(dollar + 1);
    if (text.starts_with('{')) {
      size_t end = text.find('}');
      if (end == text.npos) return not_readable(whole);
      out += TRY(value_of(text.substr(1, end - 1), look_up));
      text.remove_prefix(end + 1);
    } else if (!text.empty() && starts_name(text[0])) {
      // The reference does not have "$NAME", Sarus Suite reads it.
      return not_readable(whole);
    } else {
      out += '$';
      if (text.starts_with('$')) text.remove_prefix(1);
    }
    if (out.size() > kMaxBytes) break;
  }
  out += text;
  if (out.size() <= kMaxBytes) return out;
  return make_error(Kind::usage, quote(whole.substr(0, 100)) + " is longer than 128 KiB");
}

}  // namespace berth::edf
