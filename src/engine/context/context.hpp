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

/// This process's identity to the kernel once its privileges are set
/// (engine/context/privilege.hpp).
enum class Identity {
  root,    ///< uid 0 of the initial user namespace
  mapped,  ///< uid 0 of a user namespace that holds the caller and subordinate ids
  single,  ///< uid 0 of a user namespace that holds one id
};
std::string_view identity_name(Identity identity);  ///< "root", "mapped", "single"

/// The caller's environment, copied once by main: "K=V" entries.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}
  /// From a null-terminated `environ`.
  static Environment from(char** environ);

  std::optional<std::string_view> get(std::string_view name) const;
  /// As get(), but an empty value counts as unset.
  std::optional<std::string_view> get_filled(std::string_view name) const;
  const std::vector<std::string>& entries() const { return entries_; }
  /// The environment without LD_… variables, for our own programs that load libraries: environment
  /// modules or conda of the caller may point to another libcurl.
  std::vector<std::string> without_loader() const;

 private:
  std::vector<std::string> entries_;
};

/// Whether the caller is in a job of a batch scheduler, by gpu::find_job().
bool is_in_job(const Environment& environment);

inline constexpr const char* kSiteDirectory = "/etc/berth";

/// Where Berth keeps its files; absolute paths.
struct Paths {
  std::string root;         ///< the store
  std::string state;        ///< state that a reboot may remove
  std::string libexec;      ///< the folder of Berth's other programs
  std::string driver_root;  ///< "/" unless --driver-root or BERTH_DRIVER_ROOT names another
  /// Directories of CDI files, as --cdi-spec-dir names them; later ones win. Empty: those of the
  /// policy, or /etc/cdi and /var/run/cdi.
  std::vector<std::string> cdi_directories{};
  /// Roots of read-only stores, searched in this order after `root`.
  std::vector<std::string> additional_stores = {};
  std::string config = {};  ///< --config-dir, else kSiteDirectory
};

/// The caller's ids on the machine; a user namespace that is entered later hides them.
struct Caller {
  uint32_t uid = 0;
  std::vector<uint32_t> groups = {};  ///< the primary one first; each once
  /// Whether `groups` has the machine's ids: false if the caller was in a user namespace already.
  bool groups_known = true;
};

/// The input of every use case; main builds it once and passes it by reference.
struct Context {
  Paths paths;
  Identity identity = Identity::root;
  Environment environment;
  Log& log;
  /// The result of gpu::services_of_root(), which works only before this process enters a user
  /// namespace that it makes; else empty.
  std::vector<std::string> services_of_root = {};
  /// The format of unpacked layers, as in --layer-format; empty: directories.
  std::string layer_format = {};
  /// As in --rootfs-driver; empty: the first that works.
  std::string rootfs_driver = {};
  Caller caller = {};
  /// This process is root of a user namespace that existed before its start.
  bool foreign_space = false;
};

}  // namespace berth::engine
