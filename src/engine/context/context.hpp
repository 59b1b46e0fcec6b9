// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"

namespace berth::engine {

/// The identity of this process to the kernel after privileges were set
/// (engine/context/privilege.hpp).
enum class Identity {
  root,    ///< uid 0 of the initial user namespace
  mapped,  ///< uid 0 of a user namespace that holds the caller and subordinate ids
  single,  ///< uid 0 of a user namespace that holds one id
};
std::string_view identity_name(Identity identity);  ///< "root", "mapped", "single"

/// The caller's environment, taken once by main: "K=V" entries.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}
  /// From a null-terminated `environ`.
  static Environment from(char** environ);

  std::optional<std::string_view> get(std::string_view name) const;
  /// As get(), but an empty value counts as none.
  std::optional<std::string_view> get_filled(std::string_view name) const;
  const std::vector<std::string>& entries() const { return entries_; }
  /// For programs of ours that load libraries: LD_… is about the caller's programs, and a module or
  /// a conda of his may have another libcurl.
  std::vector<std::string> without_loader() const;

 private:
  std::vector<std::string> entries_;
};

inline constexpr const char* kSiteDirectory = "/etc/berth";

/// Where Berth keeps its things; absolute.
struct Paths {
  std::string root;         ///< the store
  std::string state;        ///< what a reboot may take away
  std::string libexec;      ///< the folder of our other programs
  std::string driver_root;  ///< "/" unless --driver-root or BERTH_DRIVER_ROOT names another
  /// Of CDI files, the later ones first believed, as --cdi-spec-dir names them; empty: those of the
  /// policy, or /etc/cdi and /var/run/cdi.
  std::vector<std::string> cdi_directories{};
  /// Roots of stores that are only read, behind `root`, the first one first.
  std::vector<std::string> additional_stores = {};
  std::string config = {};  ///< kSiteDirectory unless --config-dir says so
};

/// Empty members are filled with the defaults: /var/lib/berth and /run/berth for the machine's
/// root, else $XDG_DATA_HOME/berth (~/.local/share/berth) and $XDG_RUNTIME_DIR/berth, and where
/// that variable names no directory of ours /tmp/berth-<uid>. Additional stores are followed by
/// those of BERTH_ADDITIONAL_STORES. Relative paths become absolute.
/// `user` is nothing for root of the initial user namespace, else the caller's id outside of the
/// user namespace that the caller is in: root of `unshare -r` is an ordinary user.
/// Errors: usage (an ordinary user without HOME and XDG_DATA_HOME).
Result<Paths> complete_paths(Paths given, const Environment& environment,
                             std::optional<unsigned> user);

/// Makes the directories of `paths` with mode 0700. Those that exist must be the effective user's
/// or root's, and nobody else may write there but a group that is the caller's own. Errors: denied
/// (that check, no permission), io.
Result<void> make_directories(const Paths& paths);

/// The caller, in the ids of the machine: a user namespace that is entered later hides them.
struct Caller {
  uint32_t uid = 0;
  std::vector<uint32_t> groups = {};  ///< his own first; each once
  /// They are the machine's: not in a user namespace that he was in before.
  bool groups_known = true;
};

/// What every use case is given; built once by main and passed by reference.
struct Context {
  Paths paths;
  Identity identity = Identity::root;
  Environment environment;
  Log& log;
  /// Of gpu::services_of_root(), where this process is in a user namespace of its own making.
  std::vector<std::string> services_of_root = {};
  /// What layers become that are unpacked: as --layer-format has it; empty: directories.
  std::string layer_format = {};
  /// As --rootfs-driver has it; empty: what works.
  std::string rootfs_driver = {};
  Caller caller = {};
  /// This process is root of a user namespace that others made before it was started.
  bool foreign_space = false;
};

}  // namespace berth::engine
