// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/core/help.hpp"

namespace berth::cli {
namespace {

constexpr Complete kListed[] = {Complete::image,  Complete::container, Complete::running,
                                Complete::object, Complete::volume,    Complete::network};

bool is_listed(Complete complete) {
  return std::ranges::find(kListed, complete) != std::end(kListed);
}

/// The word in the names of a script's functions: "images".
std::string_view plural(Complete complete) {
  switch (complete) {
    case Complete::image:
      return "images";
    case Complete::container:
      return "containers";
    case Complete::running:
      return "running";
    case Complete::object:
      return "objects";
    case Complete::network:
      return "networks";
    default:
      return "volumes";
  }
}

/// A shell command that lists objects. It runs at each <Tab>, so it only reads the store.
std::string list_command(std::string_view program, Complete complete) {
  std::string name(program);
  std::string images =
      name + R"( images --format '{{.Repository}}:{{.Tag}}' 2>/dev/null)" + " | grep -v '<none>'";
  std::string containers = name + R"( ps -a --format '{{.Names}}' 2>/dev/null)";
  if (complete == Complete::image) return images;
  if (complete == Complete::container) return containers;
  if (complete == Complete::object) return containers + "; " + images;
  if (complete == Complete::running) return name + R"( ps --format '{{.Names}}' 2>/dev/null)";
  if (complete == Complete::network) {
    return name + R"( network ls --format '{{.Name}}' 2>/dev/null)";
  }
  return name + " volume ls -q 2>/dev/null";
}

std::string underscored(std::string_view text) {
  std::string name(text);
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string all_flags(const FlagTable& flags) {
  std::string words = "--help";
  for (const Flag& flag : flags) words += " --" + std::string(flag.name);
  return words;
}

/// "-m|--memory"
std::string pattern(const Flag& flag) {
  std::string text = "--" + std::string(flag.name);
  return flag.letter != 0 ? std::string{'-', flag.letter, '|'} + text : text;
}

std::string choices(const Flag& flag) {
  std::string words;
  for (std::string_view choice : flag.choices) {
    words += (words.empty() ? "" : " ") + std::string(choice);
  }
  return words;
}

/// The first words of verbs: "run", "gpu".
std::string first_words(const std::vector<VerbPage>& verbs) {
  std::string words;
  for (const VerbPage& verb : verbs) {
    std::string first(verb.text.name.substr(0, verb.text.name.find(' ')));
    if ((" " + words + " ").find(" " + first + " ") == std::string::npos) words += " " + first;
  }
  return words.empty() ? words : words.substr(1);
}

std::string second_words(const std::vector<VerbPage>& verbs, std::string_view group) {
  std::string words;
  for (const VerbPage& verb : verbs) {
    if (verb.text.name.starts_with(std::string(group) + " ")) {
      words += " " + std::string(verb.text.name.substr(group.size() + 1));
    }
  }
  return words.empty() ? words : words.substr(1);
}

std::vector<std::string> groups(const std::vector<VerbPage>& verbs) {
  std::vector<std::string> names;
  for (const VerbPage& verb : verbs) {
    size_t blank = verb.text.name.find(' ');
    if (blank == std::string_view::npos) continue;
    std::string name(verb.text.name.substr(0, blank));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string bash_reply(std::string_view program, Complete complete) {
  auto reply = [](const std::string& words) {
    return "mapfile -t COMPREPLY < <(compgen " + words + R"( -- "$cur"))";
  };
  if (complete == Complete::file) return reply("-f");
  if (complete == Complete::directory) return reply("-d");
  if (complete == Complete::verb) return reply(R"(-W "$verbs")");
  if (is_listed(complete)) return reply("-W \"$(" + list_command(program, complete) + ")\"");
  return "COMPREPLY=()";
}

std::string bash_words(std::string_view words) {
  return R"(mapfile -t COMPREPLY < <(compgen -W ")" + std::string(words) + R"(" -- "$cur"))";
}

/// Branches of a `case` that complete the value of the flag before the cursor. If the values of a
/// flag are unknown, nothing is completed, rather than an argument.
std::string bash_values(std::string_view program, const FlagTable& flags) {
  std::string text;
  for (const Flag& flag : flags) {
    if (flag.value.empty()) continue;
    std::string reply =
        flag.choices.empty() ? bash_reply(program, flag.complete) : bash_words(choices(flag));
    text += "        " + pattern(flag) + ") " + reply + "; return ;;\n";
  }
  return text;
}

/// "-e|--env|-v|--volume": the flags that take the next word.
std::string value_flags(const FlagTable& flags) {
  std::string text;
  for (const Flag& flag : flags) {
    if (!flag.value.empty()) text += (text.empty() ? "" : "|") + pattern(flag);
  }
  return text.empty() ? "--" : text;
}

std::string bash_argument(std::string_view program, const VerbText& verb) {
  return verb.words.empty() ? bash_reply(program, verb.complete) : bash_words(verb.words);
}

std::string fish_quote(std::string_view text) {
  std::string safe = "'";
  for (char c : text) safe += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return safe + "'";
}

std::string zsh_quote(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '\'') {
      safe += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      safe += std::string{'\\', c};
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string zsh_action(std::string_view program, Complete complete) {
  if (complete == Complete::file) return "_files";
  if (complete == Complete::directory) return "_files -/";
  if (complete == Complete::verb) return "_" + underscored(program) + "_verbs";
  if (is_listed(complete)) return "_" + underscored(program) + "_" + std::string(plural(complete));
  return " ";
}

std::string zsh_argument(std::string_view program, const VerbText& verb) {
  return verb.words.empty() ? zsh_action(program, verb.complete)
                            : "(" + std::string(verb.words) + ")";
}

std::string zsh_flags(std::string_view program, const FlagTable& flags) {
  std::string text;
  for (const Flag& flag : flags) {
    std::string help = "[" + zsh_quote(flag.help) + "]";
    std::string value;
    if (!flag.value.empty()) {
      std::string action =
          flag.choices.empty() ? zsh_action(program, flag.complete) : "(" + choices(flag) + ")";
      value = ":" + zsh_quote(flag.value) + ":" + action;
    }
    std::string star = std::holds_alternative<std::vector<std::string>*>(flag.target) ? "*" : "";
    std::string equals = flag.value.empty() ? "" : "=";
    text += " \\\n      '" + star + "--" + std::string(flag.name) + equals + help + value + "'";
    if (flag.letter == 0) continue;
    std::string plus = flag.value.empty() ? "" : "+";
    text += " \\\n      '" + star + "-" + std::string{flag.letter} + plus + help + value + "'";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CompletionInput& input) {
  std::string name(input.program);
  std::string function = "_" + underscored(input.program);
  std::string text = "# bash completion of " + name + ", made by '" + name + " completion bash'\n" +
                     function + "() {\n" +
                     // COMP_WORDS is split at colons, which references contain.
                     R"(  local line=${COMP_LINE:0:COMP_POINT} words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local last=$((${#words[@]} - 1))
  local cur=${words[last]} prev=${words[last-1]} verb='' i=1
  local verbs=")" + first_words(input.verbs) +
                     R"("
  COMPREPLY=()
  while ((i < last)); do
    case ${words[i]} in
      )" + value_flags(input.flags) +
                     R"() ((i+=2)) ;;
      -*) ((i+=1)) ;;
      *) verb=${words[i]}; break ;;
    esac
  done
)";
  for (const std::string& group : groups(input.verbs)) {
    text += "  if [[ $verb == " + group + " ]]; then\n    if ((i + 1 == last)); then " +
            bash_words(second_words(input.verbs, group)) + "; return; fi\n    verb=\"" + group +
            " ${words[i+1]}\"\n  fi\n";
  }
  text += "  case $verb in\n    '')\n      case $prev in\n" +
          bash_values(input.program, input.flags) + "      esac\n      if [[ $cur == -* ]]; then " +
          bash_words(all_flags(input.flags)) + "; else " +
          bash_reply(input.program, Complete::verb) + "; fi ;;\n";
  for (const VerbPage& verb : input.verbs) {
    std::string values = bash_values(input.program, verb.flags);
    text += "    '" + std::string(verb.text.name) + "')\n";
    if (!values.empty()) text += "      case $prev in\n" + values + "      esac\n";
    text += "      if [[ $cur == -* ]]; then " + bash_words(all_flags(verb.flags)) + "; else " +
            bash_argument(input.program, verb.text) + "; fi ;;\n";
  }
  return text + R"(  esac
}
)" + function +
         R"(_complete() {
  )" + function +
         R"(
  # What stands before the last colon is on the line already.
  local line=${COMP_LINE:0:COMP_POINT}
  local cur=${line##*[[:space:]]}
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
  fi
}
complete -o bashdefault -F )" +
         function + "_complete " + name + "\n";
}

std::string zsh_completion(const CompletionInput& input) {
  std::string name(input.program);
  std::string function = "_" + underscored(input.program);
  std::string text = "#compdef " + name + "\n# zsh completion of " + name + ", made by '" + name +
                     " completion zsh'\n";
  for (Complete complete : kListed) {
    text += function + "_" + std::string(plural(complete)) + "() { compadd -- ${(f)\"$(" +
            list_command(name, complete) + ")\"} }\n";
  }
  text += function + "_verbs() {\n  local -a verbs=(\n";
  std::vector<std::string> group_names = groups(input.verbs);
  for (const VerbPage& verb : input.verbs) {
    if (verb.text.name.find(' ') != std::string_view::npos) continue;
    text += "    '" + std::string(verb.text.name) + ":" + zsh_quote(verb.text.summary) + "'\n";
  }
  for (const std::string& group : group_names)
    text += "    '" + group + ":" + second_words(input.verbs, group) + "'\n";
  text += "  )\n  _describe verb verbs\n}\n";
  text += function +
          "() {\n  local context state line curcontext=$curcontext\n"
          "  typeset -A opt_args\n"
          "  _arguments -C -A '-*' '--help[Show help]'" +
          zsh_flags(input.program, input.flags) + " \\\n      '1:verb:" + function +
          "_verbs' '*::argument:->verb'\n"
          "  [[ $state == verb ]] || return\n"
          "  case $line[1] in\n";
  auto arguments = [&](const VerbPage& verb, const std::string& indent) {
    return indent + "_arguments -s '--help[Show help]'" + zsh_flags(input.program, verb.flags) +
           " \\\n      '*:argument:" + zsh_argument(input.program, verb.text) + "' ;;\n";
  };
  for (const VerbPage& verb : input.verbs) {
    if (verb.text.name.find(' ') != std::string_view::npos) continue;
    text += "    " + std::string(verb.text.name) + ")\n" + arguments(verb, "      ");
  }
  for (const std::string& group : group_names) {
    text += "    " + group +
            ")\n"
            "      if ((CURRENT == 2)); then compadd -- " +
            second_words(input.verbs, group) + "; return; fi\n      case $words[2] in\n";
    for (const VerbPage& verb : input.verbs) {
      if (!verb.text.name.starts_with(group + " ")) continue;
      text += "        " + std::string(verb.text.name.substr(group.size() + 1)) +
              ") shift words; ((CURRENT--))\n" + arguments(verb, "          ");
    }
    text += "      esac ;;\n";
  }
  return text + "  esac\n}\n" +
         // Works both from a directory of $fpath and with `source <(berth completion zsh)`.
         "if [[ $funcstack[1] == " + function + " ]]; then " + function + " \"$@\"; else compdef " +
         function + " " + name + "; fi\n";
}

std::string fish_completion(const CompletionInput& input) {
  std::string name(input.program);
  std::string text = "# fish completion of " + name + ", made by '" + name +
                     " completion fish'\n"
                     "complete -c " +
                     name + " -f\n";
  // Fish's own __fish_seen_subcommand_from searches for a word anywhere: "inspect" is also the
  // second word of "container inspect".
  const std::string is = "__" + underscored(name) + "_is";
  const std::string needs = "__" + underscored(name) + "_needs";
  const std::string typed =
      "\n  set -l words (commandline -opc)\n"
      "  set words (string match -v -- '-*' $words[2..-1])\n";
  text += "function " + is + typed +
          "  set -l last (count $argv)\n  test \"$words[1..$last]\" = \"$argv\"\nend\n";
  text += "function " + needs + typed + "  test \"$words\" = \"$argv\"\nend\n";
  auto flag_lines = [&](const FlagTable& flags, const std::string& condition) {
    std::string lines;
    for (const Flag& flag : flags) {
      lines += "complete -c " + name + " -n " + fish_quote(condition);
      if (flag.letter != 0) lines += std::string(" -s ") + flag.letter;
      lines += " -l " + std::string(flag.name);
      if (!flag.value.empty()) {
        bool files = flag.complete == Complete::file || flag.complete == Complete::directory;
        lines += files ? " -r -F" : " -x";
        if (!flag.choices.empty()) lines += " -a " + fish_quote(choices(flag));
        if (is_listed(flag.complete)) {
          lines += " -a " + fish_quote("(" + list_command(name, flag.complete) + ")");
        }
      }
      lines += " -d " + fish_quote(flag.help) + "\n";
    }
    return lines;
  };
  text += flag_lines(input.flags, needs);
  for (const VerbPage& verb : input.verbs) {
    std::string verb_name(verb.text.name);
    size_t blank = verb_name.find(' ');
    std::string first = verb_name.substr(0, blank);
    const std::string seen = is + " " + verb_name;
    if (blank == std::string::npos) {
      text += "complete -c " + name + " -n " + needs + " -a " + first + " -d " +
              fish_quote(verb.text.summary) + "\n";
    } else {
      std::string second = verb_name.substr(blank + 1);
      text += "complete -c " + name + " -n " + needs + " -a " + first + "\n";
      text += "complete -c " + name + " -n " + fish_quote(needs + " " + first) + " -a " + second +
              " -d " + fish_quote(verb.text.summary) + "\n";
    }
    text += flag_lines(verb.flags, seen);
    if (is_listed(verb.text.complete)) {
      text += "complete -c " + name + " -n " + fish_quote(seen) + " -a " +
              fish_quote("(" + list_command(name, verb.text.complete) + ")") + "\n";
    } else if (verb.text.complete == Complete::file || verb.text.complete == Complete::directory) {
      text += "complete -c " + name + " -n " + fish_quote(seen) + " -F\n";
    } else if (!verb.text.words.empty()) {
      text += "complete -c " + name + " -n " + fish_quote(seen) + " -a " +
              fish_quote(verb.text.words) + "\n";
    }
  }
  return text;
}

}  // namespace berth::cli
