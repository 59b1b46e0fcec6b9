// SPDX-License-Identifier: Apache-2.0
#include "edf/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::edf {
namespace {

template <class T>
void replace(std::optional<T>& value, std::optional<T>&& with) {
  if (with) value = std::move(with);
}

void append(std::vector<Text>& texts, std::vector<Text>&& more) {
  for (Text& text : more) texts.push_back(std::move(text));
}

void replace_entries(std::map<std::string, Text>& entries, std::map<std::string, Text>&& with) {
  with.merge(entries);
  entries = std::move(with);
}

void lay_over(Definition& below, Definition&& above) {
  replace(below.image, std::move(above.image));
  replace(below.workdir, std::move(above.workdir));
  replace(below.entrypoint, std::move(above.entrypoint));
  replace(below.writable, std::move(above.writable));
  append(below.mounts, std::move(above.mounts));
  append(below.devices, std::move(above.devices));
  replace_entries(below.variables, std::move(above.variables));
  replace_entries(below.annotations, std::move(above.annotations));
}

class Resolver {
 public:
  Resolver(const Load& load, const LookUp& look_up) : load_(load), look_up_(look_up) {}
  Result<Definition> resolve(const File& file);

 private:
  Result<void> check_chain(const std::string& next) const;
  Result<void> expand_here(Text& text) const;
  Result<void> expand_all(Definition& definition) const;

  const Load& load_;
  const LookUp& look_up_;
  std::vector<std::string> chain_;  ///< from the first file to the current one
  size_t files_ = 0;
};

Result<void> Resolver::check_chain(const std::string& next) const {
  auto again = std::ranges::find(chain_, next);
  if (again != chain_.end()) {
    return make_error(Kind::usage, "base_environment is a loop: " +
                                       join({again, chain_.end()}, " -> ") + " -> " + next);
  }
  if (chain_.size() <= kMostLevels) return {};
  return make_error(Kind::usage, fmt::format("base_environment has more than {} levels: {} -> {}",
                                             kMostLevels, join(chain_, " -> "), next));
}

Result<void> Resolver::expand_here(Text& text) const {
  text.text = TRY_CTX(expand(text.text, look_up_), text.place);
  return {};
}

Result<void> Resolver::expand_all(Definition& definition) const {
  for (auto* text : {&definition.image, &definition.workdir}) {
    if (*text) TRY(expand_here(**text));
  }
  for (Text& text : definition.mounts) TRY(expand_here(text));
  for (Text& text : definition.devices) TRY(expand_here(text));
  for (auto& [name, text] : definition.annotations) TRY(expand_here(text));
  auto anything = [](std::string_view) { return std::optional<std::string_view>(""); };
  for (const auto& [name, text] : definition.variables) {
    TRY_CTX(expand(text.text, anything), text.place);
  }
  return {};
}

Result<Definition> Resolver::resolve(const File& file) {
  // Each level may name many files: the total is limited too.
  if (++files_ > kMostFiles) {
    return make_error(Kind::usage, fmt::format("{}: more than {} files by base_environment",
                                               file.path, kMostFiles));
  }
  Definition own = TRY(parse(file.text, file.path));
  Definition whole;
  chain_.push_back(file.path);
  for (const Text& base : own.bases) {
    std::string name = TRY_CTX(expand(base.text, look_up_), base.place);
    File next = TRY_CTX(load_(name), base.place);
    TRY_CTX(check_chain(next.path), base.place);
    Definition below = TRY(resolve(next));
    lay_over(whole, std::move(below));
  }
  chain_.pop_back();
  TRY(expand_all(own));
  lay_over(whole, std::move(own));
  return whole;
}

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
  // A default is literal: with a nested "${NAME}", `inside` would end at the inner '}'.
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

Result<Definition> resolve(const File& file, const Load& load, const LookUp& look_up) {
  return Resolver(load, look_up).resolve(file);
}

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
      // CSCS's documentation does not allow "$NAME", although Sarus Suite accepts it.
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
