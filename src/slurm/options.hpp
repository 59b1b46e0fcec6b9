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

/// The options of srun, sbatch and salloc for the container of a step: the options of pyxis, with
/// the same names and meanings, and CSCS's --environment. Pure.
/// Source: pyxis 0.21, README and wiki; https://docs.cscs.ch/software/container-engine/run
namespace berth::slurm {

/// One entry of --container-mounts.
struct Mount {
  enum class Kind {
    bind,
    tmpfs,
    none,  ///< "umount:DST": do not mount there
  };
  Kind kind = Kind::bind;
  std::string source;       ///< for bind; absolute
  std::string destination;  ///< absolute
  bool read_only = false;
  bool recursive = true;
  std::string propagation = "rprivate";
  std::vector<std::string> options;  ///< for tmpfs any; for bind nosuid, nodev, noexec
};

/// "SRC:DST[:FLAGS][,SRC:DST…]", or "SRC" for the same path on both sides; flags are separated by
/// '+'. A source that begins with '.' is relative to `working_directory`. Errors: usage (form, an
/// invalid path, an unknown flag).
Result<std::vector<Mount>> parse_mounts(std::string_view text, std::string_view working_directory);

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

/// An option as the SPANK API describes it.
struct Option {
  Key key;
  const char* name;      ///< "container-image"
  const char* argument;  ///< the name of the value in the help; nullptr: no value
  const char* help;      ///< a phrase
};
inline constexpr size_t kOptions = 17;
const std::array<Option, kOptions>& options();

/// What to do with a name that an existing container may have.
enum class NameUse {
  join_or_reuse,  ///< auto: join if it runs, else use its files, else create it
  create,         ///< the container must not exist
  exec,           ///< the container has to run
  no_exec,        ///< use the container's files, even if it runs
};

/// All options of one step or job.
class Asked {
 public:
  /// Adds one option as Slurm passes it on; `text` is ignored for an option without a value.
  /// Errors: usage (no value, two values, an unknown keyword).
  Result<void> take(Key key, std::string_view text);

  using Variable = std::function<std::optional<std::string>(const std::string& name)>;
  /// Uses PYXIS_CONTAINER_* for options that were not given. Errors: as take(), with the name of
  /// the variable.
  Result<void> take_variables(const Variable& variable);

  /// Whether a container is requested at all.
  bool wants_container() const {
    return has(Key::image) || has(Key::name) || has(Key::environment_file);
  }
  /// The options that are meaningless without a container, as typed: "--container-mounts".
  std::vector<std::string> without_container() const;
  /// The options as flags of `berth slurm step`.
  std::vector<std::string> words() const;

  const std::string* value(Key key) const;
  /// The names that --container-env lists.
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
/// Errors: usage (an empty name, a name with a slash or too long for a file, an unknown keyword).
Result<Name> parse_name(std::string_view text);

/// Namespaces, besides mount and user, that are new for the container.
struct Unshared {
  bool net = false;
  bool ipc = false;
  bool uts = false;
};
/// "net,ipc,uts".  Errors: usage.
Result<Unshared> parse_unshare(std::string_view text);

}  // namespace berth::slurm
