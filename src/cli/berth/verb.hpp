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
  std::function<Result<int>(Session&, Arguments)> run;
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
  Arity arity{0, 0};
  engine::Needs needs = engine::Needs::nothing;
  /// The container among the arguments, running or about to join another one, with the user
  /// namespace that an ordinary user has to join; null: with Needs::container the first argument,
  /// else none.
  std::string (*container)(const Arguments& arguments) = nullptr;
  /// The use of named networks by the arguments; null: none.
  engine::NetworkUse (*networks)(const Arguments& arguments) = nullptr;
  Store store = Store::ready;
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  std::span<const Elsewhere> elsewhere = {};
  /// The equivalent for arguments of another engine's verb of this name; called before they are
  /// counted.
  std::optional<Error> (*arguments_elsewhere)(const Arguments& arguments) = nullptr;
  int error_status = 1;  ///< docker: 125 for run, 1 for all others
  bool hidden = false;   ///< only for our own programs
  /// A line below --help that depends on this machine; `config`: the site's directory.
  std::string (*footnote)(const engine::Environment&, const std::string& config) = nullptr;
  Command (*command)();
};

/// Makes a Command out of `FlagTable flags(Options&)` and
/// `Result<int> run(Session&, const Options&, Arguments)`. Only the called verb pays for its table.
template <class Options>
Command make_command(FlagTable (*flags)(Options&),
                     Result<int> (*run)(Session&, const Options&, Arguments),
                     std::string (*beside)(const Options&) = nullptr,
                     Arity (*arity)(const Options&) = nullptr,
                     std::string (*replaced)(const Options&) = nullptr,
                     engine::NetworkUse (*networks)(const Options&) = nullptr) {
  auto options = std::make_shared<Options>();
  Command command{flags(*options), [options, run](Session& session, Arguments arguments) {
                    return run(session, *options, std::move(arguments));
                  }};
  if (beside != nullptr) command.beside = [options, beside] { return beside(*options); };
  if (replaced != nullptr) command.replaced = [options, replaced] { return replaced(*options); };
  if (networks != nullptr) command.networks = [options, networks] { return networks(*options); };
  if (arity != nullptr) command.arity = [options, arity] { return arity(*options); };
  return command;
}

// The verbs, by the file that defines them.
// about.cpp
extern const Verb version_verb, info_verb, completion_verb, man_verb;
// archives.cpp
extern const Verb save_verb, load_verb, import_verb;
// bake.cpp
extern const Verb bake_verb;
// build.cpp
extern const Verb build_verb;
// cdi.cpp
extern const Verb cdi_generate_verb, cdi_list_verb, cdi_inspect_verb, cdi_validate_verb,
    cdi_refresh_verb;
// container_files.cpp
extern const Verb cp_verb, diff_verb, commit_verb, export_verb;
// container_status.cpp
extern const Verb ps_verb, top_verb, port_verb, logs_verb, stats_verb, events_verb;
// exec.cpp
extern const Verb exec_verb;
// gpu.cpp
extern const Verb gpu_list_verb, gpu_top_verb;
// images.cpp
extern const Verb images_verb, history_verb, tag_verb, scan_verb, image_convert_verb,
    image_mount_verb, image_unmount_verb, unshare_verb;
// inspect.cpp
extern const Verb inspect_verb, manifest_inspect_verb, image_exists_verb, container_exists_verb,
    network_exists_verb, volume_exists_verb;
// lifecycle.cpp
extern const Verb start_verb, attach_verb, stop_verb, kill_verb, restart_verb, pause_verb,
    unpause_verb, wait_verb, rename_verb, adopt_verb;
// match.cpp
extern const Verb match_verb, why_verb, why_not_verb, what_if_verb;
// network.cpp
extern const Verb network_create_verb, network_ls_verb, network_rm_verb, network_prune_verb,
    network_connect_verb, network_disconnect_verb;
// node.cpp
extern const Verb node_show_verb, node_save_verb, node_check_verb;
// policy.cpp
extern const Verb policy_show_verb, policy_test_verb, policy_lint_verb, policy_apply_verb,
    policy_import_verb;
// prune.cpp
extern const Verb container_prune_verb, image_prune_verb, volume_prune_verb, builder_prune_verb,
    system_prune_verb;
// registry.cpp
extern const Verb pull_verb, push_verb, search_verb, login_verb, logout_verb, hub_verb;
// removal.cpp
extern const Verb rm_verb, rmi_verb;
// run.cpp
extern const Verb run_verb, create_verb, update_verb, explain_verb;
// slurm.cpp
extern const Verb slurm_features_verb, slurm_bundle_verb, slurm_step_verb, slurm_preflight_verb,
    slurm_give_verb, slurm_epilog_verb;
// system.cpp
extern const Verb system_df_verb, system_check_verb, system_dedupe_verb, metrics_verb, doctor_verb;
// volume.cpp
extern const Verb volume_create_verb, volume_ls_verb, volume_rm_verb;

std::string_view berth_version();

}  // namespace berth::cli
