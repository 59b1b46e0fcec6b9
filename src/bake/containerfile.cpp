// SPDX-License-Identifier: Apache-2.0
#include "bake/containerfile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/fnv.hpp"
#include "base/text.hpp"

namespace berth::bake {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxInstructions = 1000;

using Variables = std::map<std::string, std::string>;

/// The escape character: a backslash, unless one of the first lines is a directive such as "#
/// escape=`".
char escape_of(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.starts_with('#')) break;
    std::string directive = to_lower(line.substr(1));
    std::erase(directive, ' ');
    if (directive.starts_with("escape=") && directive.size() == 8) return directive[7];
    if (directive.find('=') == std::string::npos) break;
  }
  return '\\';
}

struct Instruction {
  std::string text;  ///< on one line, with its continuation lines
  size_t end = 0;    ///< the number of lines up to its last line
};

/// Splits a file into instructions, without comments.
std::vector<Instruction> split_instructions(std::string_view text, char escape) {
  std::vector<Instruction> out;
  std::string line;
  bool goes_on = false;
  size_t number = 0;
  for (std::string_view part : split(text, '\n')) {
    ++number;
    if (part.ends_with('\r')) part.remove_suffix(1);
    std::string_view plain = trim(part);
    if (plain.starts_with('#') || (plain.empty() && goes_on)) continue;
    goes_on = plain.ends_with(escape);
    if (goes_on) plain.remove_suffix(1);
    line += plain;
    if (goes_on) {
      line += ' ';
      continue;
    }
    if (!trim(line).empty()) out.push_back({std::move(line), number});
    line.clear();
  }
  if (!trim(line).empty()) out.push_back({std::move(line), number});
  return out;
}

Result<std::vector<Instruction>> instructions_of(std::string_view text, char escape) {
  if (text.size() > kMaxBytes) return make_error(Kind::usage, "longer than 1 MiB");
  std::vector<Instruction> instructions = split_instructions(text, escape);
  if (instructions.size() > kMaxInstructions) {
    return make_error(Kind::usage, fmt::format("more than {} instructions", kMaxInstructions));
  }
  return instructions;
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string value_of(const Variables& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

/// "$NAME", "${NAME}", "${NAME:-default}", "${NAME:+instead}".
std::string substitute(std::string_view text, const Variables& variables, char escape) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == escape && i + 1 < text.size()) {
      out += text[++i];
      continue;
    }
    if (text[i] != '$' || i + 1 == text.size()) {
      if (text[i] != '"' && text[i] != '\'') out += text[i];
      continue;
    }
    bool braces = text[i + 1] == '{';
    size_t begin = i + (braces ? 2 : 1), end = begin;
    while (end < text.size() && is_name(text[end])) ++end;
    std::string value = value_of(variables, std::string(text.substr(begin, end - begin)));
    if (braces) {
      size_t close = text.find('}', end);
      if (close == std::string_view::npos) close = text.size();
      std::string_view rest = text.substr(end, close - end);
      if (rest.starts_with(":-") && value.empty()) value = rest.substr(2);
      if (rest.starts_with(":+")) value = value.empty() ? "" : std::string(rest.substr(2));
      end = std::min(close + 1, text.size());
    }
    out += value;
    i = end - 1;
  }
  return out;
}

/// The value of "--from=NAME", or of "from=NAME" among the parts of "--mount=…".
std::optional<std::string_view> from_of(std::string_view word) {
  constexpr std::string_view kFrom = "--from=", kMount = "--mount=";
  if (word.starts_with(kFrom)) return word.substr(kFrom.size());
  if (!word.starts_with(kMount)) return std::nullopt;
  for (std::string_view part : split(word.substr(kMount.size()), ',')) {
    if (part.starts_with("from=")) return part.substr(5);
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Variables& args, char escape) : args_(args), escape_(escape) {}

  Result<void> read(std::string_view instruction) {
    std::vector<std::string_view> words = split_blank(instruction);
    std::string keyword = to_lower(words[0]);
    if (keyword == "from") return read_from(words);
    if (keyword == "arg" && stages_ == 0) {
      for (size_t i = 1; i < words.size(); ++i) read_arg(words[i]);
    }
    if (keyword != "copy" && keyword != "run" && keyword != "add") return {};
    for (size_t i = 1; i < words.size() && words[i].starts_with("--"); ++i) {
      auto from = from_of(words[i]);
      if (from) add(substitute(*from, global_, escape_), *from);
    }
    return {};
  }

  bool in_stage() const { return stages_ > 0; }
  /// The value of an argument: the passed value, else the default set before the first FROM, else
  /// "".
  std::string given(const std::string& name) const {
    auto found = args_.find(name);
    return found != args_.end() ? found->second : value_of(global_, name);
  }

  Result<std::vector<BaseImage>> end() {
    if (stages_ == 0) return make_error(Kind::usage, "no FROM, so nothing to build on");
    return std::move(bases_);
  }

 private:
  void read_arg(std::string_view word) {
    size_t equal = word.find('=');
    std::string name(word.substr(0, equal));
    auto given = args_.find(name);
    if (given != args_.end()) {
      global_[name] = given->second;
    } else if (equal != std::string_view::npos) {
      global_[name] = substitute(word.substr(equal + 1), global_, escape_);
    }
  }

  Result<void> read_from(const std::vector<std::string_view>& words) {
    size_t at = 1;
    while (at < words.size() && words[at].starts_with("--")) ++at;
    std::string name = at < words.size() ? substitute(words[at], global_, escape_) : "";
    if (name.empty()) {
      return make_error(
          Kind::usage,
          fmt::format("FROM {} names no image", at < words.size() ? std::string(words[at]) : ""),
          "a build argument for it");
    }
    add(name, words[at]);
    ++stages_;
    if (at + 2 < words.size() && to_lower(words[at + 1]) == "as") {
      names_.insert(to_lower(words[at + 2]));
    }
    return {};
  }

  void add(const std::string& name, std::string_view spelled) {
    bool number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (name == "scratch" || number || names_.contains(to_lower(name))) return;
    BaseImage base{name, std::string(spelled)};
    if (std::ranges::find(bases_, base) == bases_.end()) {
      bases_.push_back(std::move(base));
    }
  }

  const Variables& args_;
  char escape_;
  Variables global_;
  std::set<std::string> names_;  // of stages
  size_t stages_ = 0;
  std::vector<BaseImage> bases_;
};

}  // namespace

Result<std::vector<BaseImage>> base_images(std::string_view containerfile, const Variables& args) {
  char escape = escape_of(containerfile);
  Reader reader(args, escape);
  for (const Instruction& instruction : TRY(instructions_of(containerfile, escape))) {
    TRY(reader.read(instruction.text));
  }
  return reader.end();
}

Result<std::string> with_values_in_names(std::string_view containerfile, const Variables& args) {
  char escape = escape_of(containerfile);
  Reader reader(args, escape);
  std::vector<std::string_view> lines = split(containerfile, '\n');
  std::string out;
  size_t copied = 0;
  auto copy_to = [&](size_t end) {
    for (; copied < end; ++copied) {
      out += lines[copied];
      if (copied + 1 < lines.size()) out += '\n';
    }
  };
  for (const Instruction& instruction : TRY(instructions_of(containerfile, escape))) {
    TRY(reader.read(instruction.text));
    std::vector<std::string_view> words = split_blank(instruction.text);
    if (!reader.in_stage() || to_lower(words[0]) != "arg") continue;
    std::string meaning = instruction.text;
    for (size_t i = 1; i < words.size(); ++i) {
      std::string name(words[i].substr(0, words[i].find('=')));
      meaning += '\0' + name + '=' + reader.given(name);
    }
    copy_to(instruction.end);
    if (!out.ends_with('\n')) out += '\n';
    out += fmt::format("ARG BERTH_ARGS_{:016x}=1\n", fnv1a(meaning));
  }
  copy_to(lines.size());
  return out;
}

}  // namespace berth::bake
