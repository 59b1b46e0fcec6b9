// SPDX-License-Identifier: Apache-2.0
#include "cli/core/help.hpp"

#include <algorithm>

#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

std::string spelling(const Flag& flag) {
  std::string text = flag.letter != 0 ? std::string{'-', flag.letter, ',', ' '} : "    ";
  text += "--" + std::string(flag.name);
  if (!flag.value.empty()) text += " " + std::string(flag.value);
  return text;
}

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t widest = 0;
  for (const auto& [left, right] : lines) widest = std::max(widest, text_width(left));
  std::string text;
  for (const auto& [left, right] : lines) {
    text += "  " + pad_right(left, widest + 2) + right + "\n";
  }
  return text;
}

std::string flags_help(const FlagTable& flags) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Flag& flag : flags) lines.emplace_back(spelling(flag), flag.help);
  lines.emplace_back("    --help", "Show this help");
  return "Flags:\n" + two_columns(lines);
}

/// roff reads a leading dot or quote as a request, a backslash as an escape, "-" as a hyphen.
std::string roff(std::string_view text) {
  std::string safe = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

void roff_flags(std::string& page, std::string_view title, const FlagTable& flags) {
  if (flags.empty()) return;
  page += ".SH " + std::string(title) + "\n";
  for (const Flag& flag : flags) {
    page += ".TP\n.B ";
    if (flag.letter != 0) page += roff(std::string{'-', flag.letter}) + ", ";
    page += roff("--" + std::string(flag.name));
    if (!flag.value.empty()) page += " \\fI" + roff(flag.value) + "\\fR";
    page += "\n" + roff(flag.help) + ".\n";
  }
}

std::string dashed(std::string_view program, std::string_view verb) {
  std::string name = std::string(program) + "-" + std::string(verb);
  std::ranges::replace(name, ' ', '-');
  return name;
}

}  // namespace

std::string usage_line(std::string_view program, const VerbText& text, bool has_flags) {
  std::string line = std::string(program) + " " + std::string(text.name);
  if (has_flags) line += " [FLAGS]";
  if (!text.arguments.empty()) line += " " + std::string(text.arguments);
  return line;
}

std::string verb_help(std::string_view program, const VerbPage& page) {
  return std::string(page.text.summary) + ", for example\n  " + std::string(page.text.example) +
         "\n\nUsage: " + usage_line(program, page.text, !page.flags.empty()) + "\n\n" +
         flags_help(page.flags);
}

std::string program_help(std::string_view program, std::string_view summary,
                         const std::vector<VerbText>& verbs, const FlagTable& flags) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const VerbText& verb : verbs) lines.emplace_back(verb.name, verb.summary);
  std::string name(program);
  return std::string(summary) + "\n\nUsage: " + name + " [FLAGS] VERB [ARG...]\n\nVerbs:\n" +
         two_columns(lines) + "\n" + flags_help(flags) + "\nSee '" + name +
         " VERB --help' for the flags of a verb.\n";
}

std::string group_help(std::string_view group, const std::vector<VerbText>& verbs) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const VerbText& verb : verbs) lines.emplace_back(verb.name, verb.summary);
  std::string name(group);
  return "Usage: " + name + " VERB [ARG...]\n\nVerbs:\n" + two_columns(lines) + "\nSee '" + name +
         " VERB --help' for the flags of a verb.\n";
}

std::string man_page(std::string_view program, std::string_view version, const VerbPage& page,
                     const FlagTable& program_flags) {
  std::string title = dashed(program, page.text.name);
  std::string text =
      ".TH " + title + " 1 \"\" \"" + std::string(program) + " " + std::string(version) + "\"\n";
  text += ".SH NAME\n" + roff(title) + " \\- " + roff(page.text.summary) + "\n";
  text += ".SH SYNOPSIS\n.B " + roff(usage_line(program, page.text, !page.flags.empty())) + "\n";
  text += ".SH EXAMPLE\n.nf\n" + roff(page.text.example) + "\n.fi\n";
  roff_flags(text, "FLAGS", page.flags);
  roff_flags(text, "GLOBAL FLAGS", program_flags);
  return text;
}

}  // namespace berth::cli
