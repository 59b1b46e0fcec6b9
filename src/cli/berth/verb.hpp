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

/// The context of a verb; main makes it.
struct Session {
  const engine::Context& context;
  Terminal& terminal;
  Report& report;
  std::string working_directory;
  std::string program;  ///< argv[0], as the user typed it
};

/// A verb ready to parse: `flags` points into options that `run` keeps alive. `run` returns the
/// exit status.
struct Command {
  FlagTable flags;
  std::function<Result<int>(Session&, std::vector<std::string>)> run;
  /// After parsing: the running container that the flags name for its namespaces, or "". An
  /// ordinary user then works in that container's user namespace, which owns them.
  std::function<std::string()> beside = {};
  /// After parsing: the container that a new one of the same name replaces, or "".
  std::function<std::string()> replaced = {};
  /// After parsing: the use of named networks by the flags.
  std::function<engine::NetworkUse()> networks = {};
  /// After parsing: how many arguments these flags leave to be given; none: as the verb says.
  std::function<Arity()> arity = {};
};

/// main's preparation for a verb.
enum class Store {
  none,   ///< nothing: the verb works even without a home directory
  ready,  ///< the directories exist
  swept,  ///< and swept of what killed owners left; run sweeps by itself, beside its container
};

struct Verb {
  VerbText text;
  Arity arity;
  engine::Needs needs = engine::Needs::nothing;
  /// The container among the arguments, running or about to join another one, with the user
  /// namespace that an ordinary user has to join; null: with Needs::container the first argument,
  /// else none.
  std::string (*container)(const std::vector<std::string>& arguments) = nullptr;
  /// The use of named networks by the arguments; null: none.
  engine::NetworkUse (*networks)(const std::vector<std::string>& arguments) = nullptr;
  Store store = Store::ready;
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  std::span<const Elsewhere> elsewhere = {};
  /// The equivalent for arguments of another engine's verb of this name; called before they are
  /// counted.
  std::optional<Error> (*arguments_elsewhere)(const std::vector<std::string>& arguments) = nullptr;
  int error_status = 1;  ///< docker: 125 for run, 1 for all others
  bool hidden = false;   ///< only for our own programs
  /// A line below --help that depends on this machine; `config`: the site's directory.
  std::string (*footnote)(const engine::Environment&, const std::string& config) = nullptr;
  Command (*command)();
};

/// Makes a Command out of `FlagTable flags(Options&)` and `Result<int> run(Session&, const
/// Options&, std::vector<std::string>)`. Only the called verb pays for its table.
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
