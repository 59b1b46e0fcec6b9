// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

/// The command line: one table per verb drives parsing, --help, shell completion and man page.
namespace berth::cli {

/// What the shell completes for a value or an argument.
enum class Complete {
  nothing,
  file,
  directory,
  image,
  container,
  running,  ///< a container that runs
  object,   ///< a container or an image
  volume,
  network,
  verb,
};

/// Parses one value of a flag. Its error only says what was expected ("expected a size such as
/// 512m"); parse() puts flag and value before it.
using ReadValue = std::function<Result<void>(std::string_view)>;

/// Where the values of a flag go. A bool makes the flag a switch (--rm, --rm=false). So does a
/// reader if the flag has no value name: it gets "true", or the text after '=' (--wait-gpus=30s). A
/// vector collects repeated flags; for all other targets the last value wins.
using Target = std::variant<bool*, std::string*, std::optional<std::string>*,
                            std::vector<std::string>*, std::optional<uint64_t>*, ReadValue>;

struct Flag {
  std::string_view name;   ///< long name, without dashes
  char letter = 0;         ///< short name; 0: none
  std::string_view value;  ///< the name of the value in the help, "K=V"; a switch has none
  std::string_view help;   ///< without a period: "Set an environment variable"
  Target target;
  std::vector<std::string_view> choices = {};  ///< all allowed values; empty: any
  Complete complete = Complete::nothing;
};

inline Flag file_flag(std::string_view name, char letter, std::string_view help, Target target) {
  return {name, letter, "FILE", help, std::move(target), {}, Complete::file};
}
inline Flag directory_flag(std::string_view name, char letter, std::string_view help,
                           Target target) {
  return {name, letter, "DIR", help, std::move(target), {}, Complete::directory};
}
inline Flag choice_flag(std::string_view name, std::string_view value, std::string_view help,
                        Target target, std::vector<std::string_view> choices) {
  return {name, 0, value, help, std::move(target), std::move(choices)};
}

/// The options have to live as long as the table, which holds pointers into them.
using FlagTable = std::vector<Flag>;

/// The options of a verb without flags.
struct NoOptions {};
inline FlagTable no_flags(NoOptions&) {
  return {};
}

/// A flag of another engine, and its equivalent here.
struct Elsewhere {
  std::string_view name;      ///< without dashes: "nv", or a letter: "B"
  std::string_view here;      ///< "--gpus all"; empty: none
  std::string_view why = {};  ///< the reason for its absence
};

/// Where flags end. Docker's verbs accept flags anywhere before "--", but all words after the image
/// of `run` belong to the container.
enum class FlagsEnd { at_double_dash, at_first_argument };

/// How many arguments a verb takes, not counting flags.
struct Arity {
  size_t least = 0;
  size_t most = SIZE_MAX;
};

/// The words that are not flags, in order.
using Arguments = std::vector<std::string>;

struct Parsed {
  Arguments arguments;
  bool help = false;  ///< --help was given (or -h if no flag has that letter)
};

/// Parses `words` (without the names of program and verb) as docker does: --name=v, --name v, -nv,
/// -n=v, -n v, -itd, repeated flags, --switch=false, "--". A long name cannot be abbreviated.
/// `command` is what was typed before `words` ("berth run"), for "see 'berth run --help'".
/// Errors: usage (an unknown flag, suggesting the nearest one or its equivalent in `elsewhere`; a
/// missing or invalid value).
Result<Parsed> parse(const FlagTable& flags, FlagsEnd end, const std::vector<std::string>& words,
                     std::string_view command, std::span<const Elsewhere> elsewhere = {});

/// Errors: usage ("'berth tag' takes 2 arguments, got 1; …").
Result<void> check_arity(const Arity& arity, size_t count, std::string_view command,
                         std::string_view usage);

/// The error for a word that is not in `candidates`: "unknown flag '--nmae', did you mean …".
Error unknown_word(std::string_view what, std::string_view word,
                   const std::vector<std::string_view>& candidates, std::string_view command);

// Readers for values that need parsing.
ReadValue read_bytes(std::optional<uint64_t>& target);   ///< "512m", "2g" → bytes
ReadValue read_integer(std::optional<int64_t>& target);  ///< "-1", "100"

}  // namespace berth::cli
