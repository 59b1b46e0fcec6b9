// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/core/flags.hpp"
#include "cli/core/help.hpp"
#include "cli/core/report.hpp"
#include "cli/core/terminal.hpp"
#include "engine/context/context.hpp"
#include "engine/context/privilege.hpp"
#include "engine/network/space.hpp"

namespace berth::cli {

/// What a verb works with; main makes it.
struct Session {
  const engine::Context& context;
  Terminal& terminal;
  Report& report;
  std::string working_directory;
  std::string program;  ///< argv[0], as the user called it
};

/// A verb ready to parse: `flags` points into options that `run` keeps alive.
/// The number that `run` gives is the exit status.
struct Command {
  FlagTable flags;
  std::function<Result<int>(Session&, std::vector<std::string>)> run;
  /// After parsing: the running container whose namespaces flags name, or "". An ordinary user
  /// then works in the user namespace of that container, which owns them.
  std::function<std::string()> beside = {};
  /// After parsing: the container that is ended and makes room for a new one of its name, or "".
  std::function<std::string()> replaced = {};
  /// After parsing: what flags say of networks with names.
  std::function<engine::NetworkUse()> networks = {};
  /// After parsing: how many arguments these flags leave to be named; none: as the verb says.
  std::function<Arity()> arity = {};
};

/// What main prepares before a verb runs.
enum class Store {
  none,   ///< nothing: the verb runs where not even a home directory is known
  ready,  ///< the directories exist
  swept,  ///< and what killed owners left is gone; run does that itself, beside its container
};

struct Verb {
  VerbText text;
  Arity arity;
  engine::Needs needs = engine::Needs::nothing;
  /// The container among the arguments that an ordinary user has to be beside, running or about to
  /// join another one; null: with Needs::container the first one, else none.
  std::string (*container)(const std::vector<std::string>& arguments) = nullptr;
  /// What the arguments are to networks with names; null: nothing.
  engine::NetworkUse (*networks)(const std::vector<std::string>& arguments) = nullptr;
  Store store = Store::ready;
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  std::span<const Elsewhere> elsewhere = {};
  /// What to type here for arguments that mean something to another engine's verb of this name;
  /// asked before they are counted.
  std::optional<Error> (*arguments_elsewhere)(const std::vector<std::string>& arguments) = nullptr;
  int error_status = 1;  ///< docker: 125 for run, 1 for all others
  bool hidden = false;   ///< called by our own programs alone
  /// A line below --help that depends on this machine; `config`: the site's directory.
  std::string (*footnote)(const engine::Environment&, const std::string& config) = nullptr;
  Command (*command)();
};

/// Makes a Command out of `FlagTable flags(Options&)` and
/// `Result<int> run(Session&, const Options&, std::vector<std::string>)`. Only the verb that is
/// called pays for its table.
template <class Options>
Command make_command(FlagTable (*flags)(Options&),
                     Result<int> (*run)(Session&, const Options&, std::vector<std::string>),
                     std::string (*beside)(const Options&) = nullptr,
                     Arity (*arity)(const Options&) = nullptr,
                     std::string (*replaced)(const Options&) = nullptr,
                     engine::NetworkUse (*networks)(const Options&) = nullptr) {
  auto options = std::make_shared<Options>();
  Command command{flags(*options),
                  [options, run](Session& session, std::vector<std::string> arguments) {
                    return run(session, *options, std::move(arguments));
                  }};
  if (beside != nullptr) command.beside = [options, beside] { return beside(*options); };
  if (replaced != nullptr) command.replaced = [options, replaced] { return replaced(*options); };
  if (networks != nullptr) command.networks = [options, networks] { return networks(*options); };
  if (arity != nullptr) command.arity = [options, arity] { return arity(*options); };
  return command;
}

std::string_view berth_version();

}  // namespace berth::cli
