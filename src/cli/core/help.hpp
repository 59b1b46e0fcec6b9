// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/core/flags.hpp"

/// Texts generated from the tables: --help, man pages, shell completion. Pure.
namespace berth::cli {

/// The texts about a verb.
struct VerbText {
  std::string_view name;            ///< "run", "gpu list"
  std::string_view arguments = {};  ///< "IMAGE [COMMAND [ARG...]]"
  std::string_view summary;         ///< one line: "Create and start a container from an image"
  std::string_view example;         ///< a command that works: "berth run --rm -it debian bash"
  Complete complete = Complete::nothing;  ///< the type of the arguments
  std::string_view words = {};            ///< all possible arguments: "bash zsh fish"
};

/// A verb with its flags, for the texts below.
struct VerbPage {
  VerbText text;
  FlagTable flags;
};

/// "berth run [FLAGS] IMAGE [COMMAND [ARG...]]"
std::string usage_line(std::string_view program, const VerbText& text, bool has_flags);

/// The summary, an example, the usage line and the flags.
std::string verb_help(std::string_view program, const VerbPage& page);

/// The help of the program: its summary, its verbs, its flags.
std::string program_help(std::string_view program, std::string_view summary,
                         const std::vector<VerbText>& verbs, const FlagTable& flags);

/// The text of "berth gpu --help": the verbs "gpu …" for the group "gpu", each listed by its second
/// word.
std::string group_help(std::string_view group, const std::vector<VerbText>& verbs);

/// A manual page in man(7) macros. `version` appears in the footer.
std::string man_page(std::string_view program, std::string_view version, const VerbPage& page,
                     const FlagTable& program_flags);

/// The input of a completion script.
struct CompletionInput {
  std::string_view program;
  FlagTable flags;  ///< the flags of the program itself
  std::vector<VerbPage> verbs;
};
std::string bash_completion(const CompletionInput& input);
std::string zsh_completion(const CompletionInput& input);
std::string fish_completion(const CompletionInput& input);

}  // namespace berth::cli
