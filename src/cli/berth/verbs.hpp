// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/berth/verb.hpp"

namespace berth::cli {

/// Every verb there is, in the order of the help.
std::vector<const Verb*> all_verbs();

/// A verb as the user called it.
struct Call {
  const Verb* verb = nullptr;
  std::string command;             ///< "berth gpu list", "berth image ls": for messages
  std::vector<std::string> words;  ///< what follows
};

/// Finds the verb that `words` begin with: its name, or docker's longer one ("image ls",
/// "container rm").
/// Errors: usage (unknown, with the nearest one; a group without its second word).
Result<Call> find_verb(const std::vector<std::string>& words);

/// "help run" → "run --help", "help gpu list" → "gpu list --help", "help" → nothing; other words as
/// they are.
/// Errors: usage (more than a verb).
Result<std::vector<std::string>> without_help(std::vector<std::string> words);

/// "berth gpu --help"; nothing where `words` are anything else.
std::optional<std::string> help_of_group(const std::vector<std::string>& words);

/// What holds for every verb.
struct GlobalOptions {
  std::optional<std::string> root, state, driver_root, config_dir, layer_format, rootfs_driver;
  std::vector<std::string> cdi_directories, additional_stores;
  bool debug = false;
  std::string log_format = "text";
  bool version = false;
};
FlagTable global_flags(GlobalOptions& options);
/// Docker's global flags that Berth does not have.
inline constexpr Elsewhere kGlobalElsewhere[] = {
    {"H", "ssh HOST berth ...", "there is no daemon to choose"},
    {"c", "ssh HOST berth ...", "there is no daemon to choose"},
    {"context", "ssh HOST berth ...", "there is no daemon to choose"},
    {"host", "ssh HOST berth ...", "there is no daemon to choose"},
};

/// "berth --help".
std::string berth_help();

/// Texts for all verbs.
CompletionInput completion_input(GlobalOptions& options);

}  // namespace berth::cli
