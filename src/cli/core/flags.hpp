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

/// What a shell offers for a value or an argument.
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

/// Reads one value of a flag. Its error says only what was expected ("expected a size such as
/// 512m"); parse() puts flag and value before it.
using ReadValue = std::function<Result<void>(std::string_view)>;

/// Where the values of a flag go. A bool is a switch (--rm, --rm=false), and so is what reads a
/// flag that names no value: it is given "true", or what follows '=' (--wait-gpus=30s); a vector
/// collects repeated flags; of all others the last one wins.
using Target = std::variant<bool*, std::string*, std::optional<std::string>*,
                            std::vector<std::string>*, std::optional<uint64_t>*, ReadValue>;

struct Flag {
  std::string_view name;   ///< long name, without dashes
  char letter = 0;         ///< short name; 0: none
  std::string_view value;  ///< what stands for the value in the help, "K=V"; a switch has none
  std::string_view help;   ///< half a sentence: "Set an environment variable"
  Target target;
  std::vector<std::string_view> choices = {};  ///< all that is allowed; empty: anything
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

/// A flag and the options it fills live equally long: the table holds pointers into them.
using FlagTable = std::vector<Flag>;

/// Of a verb that has no flags of its own.
struct NoOptions {};
inline FlagTable no_flags(NoOptions&) {
  return {};
}

/// A flag of another engine that people type, and what does the same here.
struct Elsewhere {
  std::string_view name;      ///< without dashes: "nv", or a letter: "B"
  std::string_view here;      ///< "--gpus all"; empty: nothing does
  std::string_view why = {};  ///< it is not there
};

/// Where flags end: docker's verbs take them anywhere before "--", but what follows the image of
/// `run` belongs to the container.
enum class FlagsEnd { at_double_dash, at_first_argument };

/// What a verb takes besides flags.
struct Arity {
  size_t least = 0;
  size_t most = SIZE_MAX;
};

/// What is not a flag, in order.
using Arguments = std::vector<std::string>;

struct Parsed {
  Arguments arguments;
  bool help = false;  ///< --help (or -h where the table has no such letter)
};

/// Reads `words` (without the program's and the verb's name) as docker does: --name=v, --name v,
/// -nv, -n=v, -n v, -itd, repeated flags, --switch=false, "--"; a long name is never abbreviated.
/// `command` is what the user typed before them ("berth run"), for "see 'berth run --help'".
/// Errors: usage (unknown flag with its nearest neighbour or what `elsewhere` has for it, no value,
/// a value that cannot be read).
Result<Parsed> parse(const FlagTable& flags, FlagsEnd end, const std::vector<std::string>& words,
                     std::string_view command, std::span<const Elsewhere> elsewhere = {});

/// Errors: usage ("'berth tag' takes 2 arguments, got 1; …").
Result<void> check_arity(const Arity& arity, size_t count, std::string_view command,
                         std::string_view usage);

/// The error for a word that is none of `candidates`: "unknown flag '--nmae', did you mean …".
Error unknown_word(std::string_view what, std::string_view word,
                   const std::vector<std::string_view>& candidates, std::string_view command);

// Readers for values that are more than text.
ReadValue read_bytes(std::optional<uint64_t>& target);   ///< "512m", "2g" → bytes
ReadValue read_integer(std::optional<int64_t>& target);  ///< "-1", "100"

}  // namespace berth::cli
