// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/verbs.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "cli/berth/elsewhere.hpp"

namespace berth::cli {
namespace {

// One verb per line, which clang-format would not keep.
// clang-format off
const std::array kVerbs = {
    &run_verb,
    &create_verb,
    &start_verb,
    &attach_verb,
    &exec_verb,
    &restart_verb,
    &pause_verb,
    &unpause_verb,
    &rename_verb,
    &adopt_verb,
    &ps_verb,
    &logs_verb,
    &wait_verb,
    &stop_verb,
    &kill_verb,
    &rm_verb,
    &cp_verb,
    &export_verb,
    &diff_verb,
    &commit_verb,
    &events_verb,
    &top_verb,
    &stats_verb,
    &port_verb,
    &update_verb,
    &pull_verb,
    &push_verb,
    &search_verb,
    &images_verb,
    &tag_verb,
    &rmi_verb,
    &inspect_verb,
    &history_verb,
    &manifest_inspect_verb,
    &scan_verb,
    &build_verb,
#if BERTH_BAKE
    &bake_verb,
#endif
    &save_verb,
    &load_verb,
    &import_verb,
    &match_verb,
    &why_verb,
    &why_not_verb,
    &what_if_verb,
    &hub_verb,
    &volume_create_verb,
    &volume_ls_verb,
    &volume_rm_verb,
    &volume_prune_verb,
    &network_exists_verb,
    &volume_exists_verb,
    &network_create_verb,
    &network_ls_verb,
    &network_rm_verb,
    &network_prune_verb,
    &network_connect_verb,
    &network_disconnect_verb,
    &container_exists_verb,
    &container_prune_verb,
    &image_exists_verb,
    &image_prune_verb,
    &system_df_verb,
    &system_prune_verb,
    &system_check_verb,
    &system_dedupe_verb,
    &image_convert_verb,
    &image_mount_verb,
    &image_unmount_verb,
    &unshare_verb,
    &builder_prune_verb,
    &login_verb,
    &logout_verb,
    &gpu_list_verb,
    &gpu_top_verb,
    &metrics_verb,
    &node_show_verb,
    &node_save_verb,
    &node_check_verb,
    &node_run_verb,
    &node_status_verb,
    &node_labels_verb,
    &node_manifest_verb,
    &node_setup_verb,
    &slurm_bundle_verb,
    &slurm_features_verb,
    &slurm_give_verb,
    &slurm_preflight_verb,
    &slurm_step_verb,
    &slurm_epilog_verb,
    &cdi_generate_verb,
    &cdi_list_verb,
    &cdi_inspect_verb,
    &cdi_validate_verb,
    &cdi_refresh_verb,
    &policy_show_verb,
    &policy_test_verb,
    &policy_lint_verb,
    &policy_apply_verb,
    &policy_import_verb,
    &explain_verb,
    &doctor_verb,
    &info_verb,
    &version_verb,
    &completion_verb,
    &man_verb,
};
// clang-format on

/// A verb that CMake's switch `part` leaves out of a build.
struct BuildPart {
  std::string_view verb, part;
  bool built;
};
constexpr BuildPart kParts[] = {{"bake", "BERTH_BAKE", BERTH_BAKE}};

/// A longer name that docker has for a verb; scripts use it.
struct Alias {
  std::string_view name, verb;
  std::string_view flag = {};  ///< a flag that the longer name implies
};
constexpr Alias kAliases[] = {
    {"builder build", "build"},
    {"buildx build", "build"},
    {"buildx prune", "builder prune"},
    {"container attach", "attach"},
    {"container commit", "commit"},
    {"container cp", "cp"},
    {"container create", "create"},
    {"container diff", "diff"},
    {"container exec", "exec"},
    {"container export", "export"},
    {"container inspect", "inspect", "--type=container"},
    {"container kill", "kill"},
    {"container list", "ps"},
    {"container logs", "logs"},
    {"container ls", "ps"},
    {"container pause", "pause"},
    {"container port", "port"},
    {"container ps", "ps"},
    {"container rename", "rename"},
    {"container restart", "restart"},
    {"container rm", "rm"},
    {"container run", "run"},
    {"container start", "start"},
    {"container stats", "stats"},
    {"container stop", "stop"},
    {"container top", "top"},
    {"container unpause", "unpause"},
    {"container update", "update"},
    {"container wait", "wait"},
    {"image build", "build"},
    {"image history", "history"},
    {"image import", "import"},
    {"image inspect", "inspect", "--type=image"},
    {"image list", "images"},
    {"image load", "load"},
    {"image ls", "images"},
    {"image pull", "pull"},
    {"image push", "push"},
    {"image remove", "rmi"},
    {"image rm", "rmi"},
    {"image rmi", "rmi"},
    {"image save", "save"},
    {"image search", "search"},
    {"image tag", "tag"},
    {"image umount", "image unmount"},
    {"network inspect", "inspect", "--type=network"},
    {"network list", "network ls"},
    {"network remove", "network rm"},
    {"policy check", "policy lint"},
    {"system events", "events"},
    {"system info", "info"},
    {"volume inspect", "inspect", "--type=volume"},
    {"volume list", "volume ls"},
    {"volume remove", "volume rm"},
    {"gpu ls", "gpu list"},
    {"cdi ls", "cdi list"},
};

/// Null if `name` is not an alias.
const Alias* alias_named(std::string_view name) {
  auto found = std::ranges::find(kAliases, name, &Alias::name);
  return found == std::end(kAliases) ? nullptr : found;
}

const Verb* verb_named(std::string_view name) {
  for (const Verb* verb : kVerbs) {
    if (verb->text.name == name) return verb;
  }
  return nullptr;
}

/// The second words of the verbs in `group`; empty if it is not a group.
std::vector<std::string_view> group_words(std::string_view group) {
  std::vector<std::string_view> words;
  auto add = [&](std::string_view name) {
    if (name.size() > group.size() + 1 && name.starts_with(group) && name[group.size()] == ' ') {
      words.push_back(name.substr(group.size() + 1));
    }
  };
  for (const Verb* verb : all_verbs()) add(verb->text.name);
  for (const Alias& alias : kAliases) {
    if (verb_named(alias.verb) != nullptr) add(alias.name);
  }
  return words;
}

}  // namespace

std::vector<const Verb*> all_verbs() {
  std::vector<const Verb*> verbs(kVerbs.begin(), kVerbs.end());
  std::erase_if(verbs, [](const Verb* verb) { return verb->hidden; });
  return verbs;
}

Result<Call> find_verb(const std::vector<std::string>& words) {
  if (const Verb* verb = verb_named(words[0])) {
    return Call{verb, "berth " + words[0], {words.begin() + 1, words.end()}};
  }
  std::vector<std::string_view> seconds = group_words(words[0]);
  if (seconds.empty()) {
    for (const BuildPart& one : kParts) {
      if (one.verb != words[0] || one.built) continue;
      return make_error(Kind::unsupported, "this build of Berth has no verb " + quote(words[0]),
                        "a build of Berth with " + std::string(one.part) + "=ON");
    }
    if (auto other = verb_elsewhere(words[0])) return *other;
    std::vector<std::string_view> names;
    for (const Verb* verb : all_verbs()) {
      names.push_back(verb->text.name);
      names.push_back(verb->text.name.substr(0, verb->text.name.find(' ')));
    }
    for (const Alias& alias : kAliases) {
      if (verb_named(alias.verb) != nullptr) {
        names.push_back(alias.name.substr(0, alias.name.find(' ')));
      }
    }
    return unknown_word("verb", words[0], names, "berth");
  }
  const std::string group = "berth " + words[0];
  const std::string known = join(std::vector<std::string>(seconds.begin(), seconds.end()), ", ") +
                            "; see '" + group + " --help'";
  if (words.size() == 1 || words[1].starts_with('-')) {
    return make_error(Kind::usage, quote(group) + " needs one of: " + known);
  }
  std::string name = words[0] + " " + words[1];
  const Alias* alias = alias_named(name);
  if (const Verb* verb = verb_named(alias != nullptr ? alias->verb : name)) {
    Call call{verb, "berth " + name, {words.begin() + 2, words.end()}};
    if (alias != nullptr && !alias->flag.empty()) {
      call.words.insert(call.words.begin(), std::string(alias->flag));
    }
    return call;
  }
  if (auto other = verb_elsewhere(name)) return *other;
  if (nearest(words[1], seconds)) return unknown_word("verb", words[1], seconds, group);
  return make_error(Kind::usage,
                    quote(group) + " has no " + quote(words[1]) + "; expected one of: " + known);
}

Result<std::vector<std::string>> without_help(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  if (words.empty()) return words;
  size_t length = verb_named(words[0]) == nullptr && !group_words(words[0]).empty() ? 2 : 1;
  if (words.size() > length) {
    return make_error(Kind::usage, "'berth help' takes one verb; see 'berth --help'");
  }
  // Directly after the verb, because words after an image belong to the container.
  words.emplace_back("--help");
  return words;
}

std::optional<std::string> help_of_group(const std::vector<std::string>& words) {
  if (words.size() != 2 || (words[1] != "--help" && words[1] != "-h")) return std::nullopt;
  if (verb_named(words[0]) != nullptr) return std::nullopt;
  std::vector<VerbText> texts;
  for (std::string_view second : group_words(words[0])) {
    const std::string name = words[0] + " " + std::string(second);
    const Alias* alias = alias_named(name);
    VerbText text = verb_named(alias != nullptr ? alias->verb : name)->text;
    text.name = second;
    texts.push_back(text);
  }
  if (texts.empty()) return std::nullopt;
  return group_help("berth " + words[0], texts);
}

FlagTable global_flags(GlobalOptions& o) {
  return {
      directory_flag("root", 0, "Directory for images and containers", &o.root),
      directory_flag("additional-store", 0,
                     "Also use the images of the store in DIR (BERTH_ADDITIONAL_STORES)",
                     &o.additional_stores),
      directory_flag("state", 0, "Directory for runtime state, which a reboot clears", &o.state),
      directory_flag("driver-root", 0,
                     "Look for the GPU driver's files under DIR (BERTH_DRIVER_ROOT)",
                     &o.driver_root),
      directory_flag("cdi-spec-dir", 0,
                     "Read CDI files from DIR instead of /etc/cdi and /var/run/cdi",
                     &o.cdi_directories),
      directory_flag("config-dir", 0, "Directory of the site's configuration (/etc/berth)",
                     &o.config_dir),
      choice_flag("layer-format", "FORMAT",
                  "Format of unpacked layers: directory or erofs (BERTH_LAYER_FORMAT)",
                  &o.layer_format, {"directory", "erofs"}),
      choice_flag("rootfs-driver", "DRIVER",
                  "Root file systems: overlay, fuse-overlayfs, copy (BERTH_ROOTFS_DRIVER)",
                  &o.rootfs_driver, {"overlay", "fuse-overlayfs", "copy"}),
      {"debug", 'D', "", "Print debug messages; show where in the source an error arose", &o.debug},
      choice_flag("log-format", "FORMAT", "Format of messages on stderr: text or json",
                  &o.log_format, {"text", "json"}),
      {"version", 'v', "", "Print the version", &o.version},
  };
}

std::string berth_help() {
  GlobalOptions options;
  std::vector<VerbText> texts;
  for (const Verb* verb : all_verbs()) texts.push_back(verb->text);
  return program_help("berth", "Run GPU and HPC containers", texts, global_flags(options));
}

CompletionInput completion_input(GlobalOptions& options) {
  CompletionInput input{"berth", global_flags(options), {}};
  // The options that the tables point to do not outlive the loop; the texts do not need them.
  for (const Verb* verb : all_verbs()) input.verbs.push_back({verb->text, verb->command().flags});
  for (const Alias& alias : kAliases) {
    const Verb* verb = verb_named(alias.verb);
    if (verb == nullptr) continue;
    VerbText text = verb->text;
    text.name = alias.name;
    if (alias.flag == "--type=image") text.complete = Complete::image;
    if (alias.flag == "--type=container") text.complete = Complete::container;
    if (alias.flag == "--type=volume") text.complete = Complete::volume;
    if (alias.flag == "--type=network") text.complete = Complete::network;
    input.verbs.push_back({text, verb->command().flags});
  }
  return input;
}

}  // namespace berth::cli
