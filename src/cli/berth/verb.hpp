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
  /// Call after parsing: the running container with the namespaces that the flags request, or "".
  /// An ordinary user has to be in the user namespace that owns them.
  std::function<std::string()> beside = {};
  /// Call after parsing: the name of the container that the new container replaces, or "".
  std::function<std::string()> replaced = {};
  /// Call after parsing: how the flags use named networks.
  std::function<engine::NetworkUse()> networks = {};
  /// Call after parsing: how many arguments the verb takes with these flags. Empty: Verb::arity.
  std::function<Arity()> arity = {};
};

/// How main prepares the store for a verb.
enum class Store {
  none,   ///< nothing: the verb works even without a home directory
  ready,  ///< the directories exist
  swept,  ///< and what killed processes left is removed; `run` does this while its container runs
};

struct Verb {
  VerbText text;
  Arity arity{0, 0};
  engine::Needs needs = engine::Needs::nothing;
  /// The container among the arguments with the user namespace in which an ordinary user has to
  /// work. It runs, or it will join the namespaces of a container that runs. Null: with
  /// Needs::container the first argument, otherwise no container.
  std::string (*container)(const Arguments& arguments) = nullptr;
  /// How the arguments use named networks. Null: they use none.
  engine::NetworkUse (*networks)(const Arguments& arguments) = nullptr;
  Store store = Store::ready;
  FlagsEnd flags_end = FlagsEnd::at_double_dash;
  std::span<const Elsewhere> elsewhere = {};
  /// For arguments that another engine accepts for a verb of this name: an error that names the
  /// equivalent. Called before the number of arguments is checked.
  std::optional<Error> (*arguments_elsewhere)(const Arguments& arguments) = nullptr;
  int error_status = 1;  ///< docker: 125 for run, 1 for all others
  bool hidden = false;   ///< only Berth's programs call it
  /// A line at the end of --help that depends on this machine. `config` is the site's configuration
  /// directory.
  std::string (*footnote)(const engine::Environment&, const std::string& config) = nullptr;
  Command (*command)();
};

/// Makes a Command out of `FlagTable flags(Options&)` and `Result<int> run(Session&, const
/// Options&, Arguments)`. Only the table of the called verb is built.
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

// Each verb is defined in its own file, or in the file of its group.
extern const Verb adopt_verb, attach_verb, bake_verb, build_verb, builder_prune_verb,
    cdi_generate_verb, cdi_inspect_verb, cdi_list_verb, cdi_refresh_verb, cdi_validate_verb,
    commit_verb, completion_verb, container_exists_verb, container_prune_verb, cp_verb, create_verb,
    diff_verb, doctor_verb, events_verb, exec_verb, explain_verb, export_verb, gpu_list_verb,
    gpu_top_verb, history_verb, hub_verb, image_convert_verb, image_exists_verb, image_mount_verb,
    image_prune_verb, image_unmount_verb, images_verb, import_verb, info_verb, inspect_verb,
    kill_verb, load_verb, login_verb, logout_verb, logs_verb, man_verb, manifest_inspect_verb,
    match_verb, metrics_verb, network_connect_verb, network_create_verb, network_disconnect_verb,
    network_exists_verb, network_ls_verb, network_prune_verb, network_rm_verb, node_check_verb,
    node_labels_verb, node_manifest_verb, node_run_verb, node_save_verb, node_setup_verb,
    node_show_verb, node_status_verb, pause_verb, policy_apply_verb, policy_import_verb,
    policy_lint_verb, policy_show_verb, policy_test_verb, port_verb, ps_verb, pull_verb, push_verb,
    rename_verb, restart_verb, rm_verb, rmi_verb, run_verb, save_verb, scan_verb, search_verb,
    slurm_bundle_verb, slurm_epilog_verb, slurm_features_verb, slurm_give_verb,
    slurm_preflight_verb, slurm_step_verb, start_verb, stats_verb, stop_verb, system_check_verb,
    system_dedupe_verb, system_df_verb, system_prune_verb, tag_verb, top_verb, unpause_verb,
    unshare_verb, update_verb, version_verb, volume_create_verb, volume_exists_verb, volume_ls_verb,
    volume_prune_verb, volume_rm_verb, wait_verb, what_if_verb, why_not_verb, why_verb;

std::string_view berth_version();

}  // namespace berth::cli
