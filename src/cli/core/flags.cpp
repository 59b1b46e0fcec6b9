// SPDX-License-Identifier: Apache-2.0
#include "cli/core/flags.hpp"

#include <getopt.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::cli {
namespace {

constexpr int kArgument = 1;       // getopt's result for a word that is not a flag
constexpr int kFirstFlag = 0x100;  // above every letter
constexpr int kHelp = 0xFF;

std::string see(std::string_view command) {
  return "see '" + std::string(command) + " --help'";
}

Error usage_error(std::string what, std::string_view command) {
  return make_error(Kind::usage, std::move(what) + "; " + see(command));
}

bool is_switch(const Flag& flag) {
  return flag.value.empty();
}

Result<bool> read_bool(std::string_view text) {
  for (std::string_view word : {"true", "TRUE", "True", "t", "T", "1"}) {
    if (text == word) return true;
  }
  for (std::string_view word : {"false", "FALSE", "False", "f", "F", "0"}) {
    if (text == word) return false;
  }
  return make_error(Kind::usage, "expected true or false");
}

Result<void> store(const Flag& flag, std::string_view value) {
  if (!flag.choices.empty()) {
    std::string expected;
    for (std::string_view choice : flag.choices) {
      if (choice == value) expected.clear();
      if (choice == value) break;
      expected += (expected.empty() ? "expected '" : " or '") + std::string(choice) + "'";
    }
    if (!expected.empty()) return make_error(Kind::usage, expected);
  }
  struct Store {
    std::string_view value;
    Result<void> operator()(bool* target) const {
      *target = TRY(read_bool(value));
      return {};
    }
    Result<void> operator()(std::string* target) const {
      *target = value;
      return {};
    }
    Result<void> operator()(std::optional<std::string>* target) const {
      *target = std::string(value);
      return {};
    }
    Result<void> operator()(std::vector<std::string>* target) const {
      target->emplace_back(value);
      return {};
    }
    Result<void> operator()(std::optional<uint64_t>* target) const {
      *target = parse_u64(value);
      if (!*target) return make_error(Kind::usage, "expected a whole number");
      return {};
    }
    Result<void> operator()(const ReadValue& read) const { return read(value); }
  };
  return std::visit(Store{value}, flag.target);
}

/// getopt_long() implements the grammar. Its state is global and it needs C strings, so one object
/// holds both during a parse.
class Getopt {
 public:
  Getopt(const FlagTable& flags, FlagsEnd end, const std::vector<std::string>& words)
      : words_(words) {
    words_.insert(words_.begin(), "berth");
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);

    // With "-" getopt returns the other words in order, so that POSIXLY_CORRECT changes nothing.
    letters_ = end == FlagsEnd::at_first_argument ? "+:" : "-:";
    names_.reserve(flags.size());
    bool letter_h = false;
    for (size_t i = 0; i < flags.size(); ++i) {
      const Flag& flag = flags[i];
      names_.emplace_back(flag.name);
      long_.push_back({names_.back().c_str(),
                       is_switch(flag) ? optional_argument : required_argument, nullptr,
                       kFirstFlag + static_cast<int>(i)});
      letter_h |= flag.letter == 'h';
      if (flag.letter == 0) continue;
      letters_ += flag.letter;
      if (!is_switch(flag)) letters_ += ':';
    }
    if (!letter_h) letters_ += 'h';
    long_.push_back({"help", no_argument, nullptr, kHelp});
    long_.push_back({});
    optind = 0;  // glibc: forget the previous parse
    opterr = 0;
  }

  int next() {
    long_index_ = -1;
    return getopt_long(static_cast<int>(words_.size()), argv_.data(), letters_.c_str(),
                       long_.data(), &long_index_);
  }

  bool was_long() const { return long_index_ >= 0; }

  /// The word that held the flag just read, e.g. "--memory=1g" or "-it".
  std::string_view word(bool value_apart) const {
    int index = optind - (value_apart ? 2 : 1);
    return argv_[static_cast<size_t>(index)];
  }
  bool value_is_apart() const { return optarg != nullptr && optarg == argv_[index_before()]; }

  /// The word with an unknown letter. getopt stays at this word while letters are left in it.
  std::string_view cluster() const {
    auto at = static_cast<size_t>(optind);
    bool inside =
        at < words_.size() && words_[at].size() > 2 && argv_[at][0] == '-' && argv_[at][1] != '-' &&
        std::string_view(argv_[at]).find(static_cast<char>(optopt)) != std::string_view::npos;
    return inside ? argv_[at] : argv_[index_before()];
  }

  /// Whether the '=' that getopt has found follows `letter` in the current word.
  bool is_behind(char letter) const {
    if (static_cast<size_t>(optind) >= words_.size()) return false;
    std::string_view word = argv_[static_cast<size_t>(optind)];
    size_t equals = word.find('=');
    return equals != word.npos && equals > 0 && word[equals - 1] == letter;
  }
  /// The value of "-H=false". getopt has read the letter and found the '='; it continues with the
  /// next word.
  std::string take_value() {
    char* word = argv_[static_cast<size_t>(optind)];
    size_t equals = std::string_view(word).find('=');
    std::string value = word + equals + 1;
    word[equals + 1] = '\0';  // the current position of getopt
    ++optind;
    return value;
  }

  std::vector<std::string> rest() const { return {argv_.begin() + optind, argv_.end() - 1}; }

 private:
  size_t index_before() const { return static_cast<size_t>(optind - 1); }

  std::vector<std::string> words_;
  std::vector<char*> argv_;
  std::string letters_;
  std::vector<std::string> names_;
  std::vector<option> long_;
  int long_index_ = -1;
};

std::string_view name_in(std::string_view word) {
  word.remove_prefix(2);
  return word.substr(0, word.find('='));
}

/// The entry of `elsewhere` for a flag spelled "--nv" or "-B".
std::optional<Error> found_elsewhere(std::string_view spelled_flag, std::string_view name,
                                     std::span<const Elsewhere> elsewhere) {
  for (const Elsewhere& other : elsewhere) {
    if (other.name != name) continue;
    std::string what = "unknown flag " + quote(spelled_flag);
    if (!other.why.empty()) what += ": " + std::string(other.why);
    return make_error(Kind::usage, std::move(what), std::string(other.here));
  }
  return std::nullopt;
}

Error unknown_long(const FlagTable& flags, std::string_view word, std::string_view command,
                   std::span<const Elsewhere> elsewhere) {
  std::string_view name = name_in(word);
  if (auto known = found_elsewhere(word.substr(0, name.size() + 2), name, elsewhere)) return *known;
  std::vector<std::string> spelled{"--help"};
  for (const Flag& flag : flags) spelled.push_back("--" + std::string(flag.name));
  std::vector<std::string_view> candidates(spelled.begin(), spelled.end());
  return unknown_word("flag", word.substr(0, word.find('=')), candidates, command);
}

Error unknown_letter(const FlagTable& flags, char letter, std::string_view word,
                     std::string_view command, std::span<const Elsewhere> elsewhere) {
  std::string dashed = {'-', letter};
  std::string_view name = std::string_view(dashed).substr(1);
  if (auto known = found_elsewhere(dashed, name, elsewhere)) return *known;
  if (letter == '=') {
    return usage_error("a value after '=' in " + quote(word) + " needs the long name of the flag",
                       command);
  }
  // Users of other tools type "-name" for "--name".
  for (const Flag& flag : flags) {
    if (word.substr(1) == flag.name)
      return unknown_word("flag", word, {"--" + std::string(flag.name)}, command);
  }
  // A single byte of a multi-byte character would garble the line.
  if (letter < 0) return usage_error("unknown flag in " + quote(word), command);
  std::string where = word == dashed ? "" : " in " + quote(word);
  return usage_error("unknown flag " + quote(dashed) + where, command);
}

const Flag* find_letter(const FlagTable& flags, int letter) {
  for (const Flag& flag : flags) {
    if (flag.letter != 0 && flag.letter == letter) return &flag;
  }
  return nullptr;
}

/// The candidate that begins with `word` if there is only one: users type abbreviations.
std::optional<std::string_view> only_continuation(std::string_view word,
                                                  const std::vector<std::string_view>& candidates) {
  auto begins = [&](std::string_view candidate) { return candidate.starts_with(word); };
  auto first = std::ranges::find_if(candidates, begins);
  if (first == candidates.end() ||
      std::find_if(first + 1, candidates.end(), begins) != candidates.end()) {
    return std::nullopt;
  }
  return *first;
}

std::string spelled(const Flag& flag, bool by_letter) {
  return by_letter ? std::string{'-', flag.letter} : "--" + std::string(flag.name);
}

}  // namespace

Error unknown_word(std::string_view what, std::string_view word,
                   const std::vector<std::string_view>& candidates, std::string_view command) {
  std::string text = "unknown " + std::string(what) + " " + quote(word);
  auto near = only_continuation(word, candidates);
  if (!near) near = nearest(word, candidates);
  if (near) {
    text += ", did you mean " + quote(*near) + "?";
    return make_error(Kind::usage, text + " " + see(command));
  }
  return usage_error(std::move(text), command);
}

Result<Parsed> parse(const FlagTable& flags, FlagsEnd end, const std::vector<std::string>& words,
                     std::string_view command, std::span<const Elsewhere> elsewhere) {
  Parsed parsed;
  Getopt getopt(flags, end, words);
  const Flag* last_switch = nullptr;  // the last switch that was set by a letter
  for (int code = getopt.next(); code != -1; code = getopt.next()) {
    if (code == kArgument) {
      parsed.arguments.emplace_back(optarg);
      continue;
    }
    if (code == '?' && optopt == 0) {
      return unknown_long(flags, getopt.word(false), command, elsewhere);
    }
    if (code == '?' && optopt == '=' && last_switch != nullptr &&
        getopt.is_behind(last_switch->letter)) {
      const std::string value = getopt.take_value();
      Result<void> stored = store(*last_switch, value);
      if (!stored) {
        return usage_error("invalid value " + quote(value) + " for " +
                               quote(spelled(*last_switch, true)) + ": " + stored.error().what,
                           command);
      }
      last_switch = nullptr;
      continue;
    }
    if (code == '?' && optopt < kFirstFlag && optopt != kHelp) {
      return unknown_letter(flags, static_cast<char>(optopt), getopt.cluster(), command, elsewhere);
    }
    bool missing = code == ':';
    int which = missing || code == '?' ? optopt : code;
    bool by_letter = which < kHelp;
    const Flag* flag = by_letter             ? find_letter(flags, which)
                       : which >= kFirstFlag ? &flags[static_cast<size_t>(which - kFirstFlag)]
                                             : nullptr;
    // getopt accepts "--nam" for "--name"; docker does not, and a new flag would change its
    // meaning.
    if (!by_letter) {
      std::string_view word = getopt.word(!missing && getopt.value_is_apart());
      std::string_view full = flag != nullptr ? flag->name : "help";
      if (name_in(word) != full) return unknown_long(flags, word, command, elsewhere);
      if (flag == nullptr && code == '?') return usage_error("'--help' takes no value", command);
    }
    if (flag == nullptr) {
      parsed.help = true;
      return parsed;
    }
    std::string shown = quote(spelled(*flag, by_letter));
    if (missing) {
      return usage_error(shown + " needs a value (" + std::string(flag->value) + ")", command);
    }
    last_switch = by_letter && is_switch(*flag) ? flag : nullptr;
    std::string_view value = "true";
    if (optarg != nullptr) value = optarg;
    // "-e=K=V" is "-eK=V" for docker.
    if (by_letter && optarg != nullptr && !getopt.value_is_apart() && value.starts_with('=')) {
      value.remove_prefix(1);
    }
    Result<void> stored = store(*flag, value);
    if (!stored) {
      // The same letter may mean something else in other programs.
      if (by_letter) shown += " (--" + std::string(flag->name) + ")";
      return usage_error(
          "invalid value " + quote(value) + " for " + shown + ": " + stored.error().what, command);
    }
  }
  for (std::string& word : getopt.rest()) parsed.arguments.push_back(std::move(word));
  return parsed;
}

Result<void> check_arity(const Arity& arity, size_t count, std::string_view command,
                         std::string_view usage) {
  if (count >= arity.least && count <= arity.most) return {};
  size_t wanted = count < arity.least ? arity.least : arity.most;
  std::string bound = arity.least == arity.most ? ""
                      : count < arity.least     ? "at least "
                                                : "at most ";
  std::string number =
      wanted == 0 ? "no arguments"
                  : bound + std::to_string(wanted) + (wanted == 1 ? " argument" : " arguments");
  return usage_error(quote(command) + " takes " + number + ", got " + std::to_string(count) +
                         "; usage: " + std::string(usage),
                     command);
}

ReadValue read_bytes(std::optional<uint64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = parse_bytes(text);
    if (!target) return make_error(Kind::usage, "expected a size such as 512m or 2g");
    return {};
  };
}

ReadValue read_integer(std::optional<int64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = parse_i64(text);
    if (!target) return make_error(Kind::usage, "expected a whole number");
    return {};
  };
}

}  // namespace berth::cli
