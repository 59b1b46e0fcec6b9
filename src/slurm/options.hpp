// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// What the users of srun, sbatch and salloc say of the container of a step: the options of pyxis,
/// by their names and with what they mean there, and CSCS's --environment. Pure.
/// Source: pyxis 0.21, README and wiki; https://docs.cscs.ch/software/container-engine/run
namespace berth::slurm {

enum class Key {
  image,
  mounts,
  workdir,
  name,
  save,
  mount_home,
  no_mount_home,
  remap_root,
  no_remap_root,
  entrypoint,
  no_entrypoint,
  entrypoint_log,
  writable,
  readonly,
  env,
  unshare,
  environment_file,
};

/// How Slurm is told of an option.
struct Option {
  Key key;
  const char* name;      ///< "container-image"
  const char* argument;  ///< what the help calls its value; nullptr: it has none
  const char* help;      ///< half a sentence
};
inline constexpr size_t kOptions = 17;
const std::array<Option, kOptions>& options();

/// How a name is used that there may be a container of already.
enum class NameUse {
  join_or_reuse,  ///< auto: joined where it runs, else its files are used, else it is made
  create,         ///< there must be none
  exec,           ///< it must run
  no_exec,        ///< its files are used, whether it runs or not
};

/// All that was said, of one step or job.
class Asked {
 public:
  /// Takes one option as Slurm passes it on; `text` is ignored where it has no value.
  /// Errors: usage (no value, two values, a word that is none of those that there are).
  Result<void> take(Key key, std::string_view text);

  using Variable = std::function<std::optional<std::string>(const std::string& name)>;
  /// Takes PYXIS_CONTAINER_* for what no option says.  Errors: as take(), with the variable.
  Result<void> take_variables(const Variable& variable);

  /// Whether there is to be a container at all.
  bool wants_container() const {
    return has(Key::image) || has(Key::name) || has(Key::environment_file);
  }
  /// The options that mean nothing without a container, as typed: "--container-mounts".
  std::vector<std::string> without_container() const;
  /// The flags of `berth slurm step` that say the same.
  std::vector<std::string> words() const;

  const std::string* value(Key key) const;
  /// Names of --container-env.
  std::vector<std::string> environment() const;

 private:
  bool has(Key key) const { return said_.contains(key); }
  Result<void> refuse_both(Key key, Key opposite) const;

  std::map<Key, std::string> said_;
};

/// "NAME[:auto|create|exec|no_exec]".
struct Name {
  std::string name;
  NameUse use = NameUse::join_or_reuse;
};
/// Errors: usage (an empty name, one with a slash or longer than a file's, an unknown word).
Result<Name> parse_name(std::string_view text);

/// Namespaces of a container's own, beside those of mounts and users.
struct Unshared {
  bool net = false;
  bool ipc = false;
  bool uts = false;
};
/// "net,ipc,uts".  Errors: usage.
Result<Unshared> parse_unshare(std::string_view text);

}  // namespace berth::slurm
