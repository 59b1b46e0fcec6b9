// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's, and criu needs nearly all. Hostile: the
// messages of criu about a container's processes; they are shown and never interpreted. A
// checkpoint image that is restored is trusted: it determines the user, capabilities and filters of
// the processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "sys/mount/table.hpp"
#include "sys/process/process.hpp"

/// CRIU as a program: docs/decisions/0076.
namespace berth::runtime {

/// Options that checkpoint and restore share, named as in runc.
struct CriuOptions {
  std::string image_path;  ///< empty: "checkpoint" in the working directory
  std::string work_path;   ///< for logs and statistics; empty: the images' directory
  bool tcp_established = false;
  bool tcp_skip_in_flight = false;
  bool link_remap = false;
  bool external_unix_sockets = false;
  bool shell_job = false;
  bool file_locks = false;
  bool lazy_pages = false;
  bool auto_dedup = false;
  std::string manage_cgroups_mode = "soft";
};

/// The path of this machine's criu, if `criu check` says that it can work here.
/// Errors: unsupported (no criu, or the first reason that its check prints).
Result<std::string> find_criu();

/// The environment of criu: it starts iptables and tar.
std::vector<std::string> criu_environment();

/// Whether criu finds iptables, its default program to lock a network.
bool has_iptables();

/// Absolute directories, so that criu can run in "/".
struct CriuDirectories {
  std::string images;
  std::string work;
};
enum class MakeImages { no, yes };
/// Opens the directories and makes missing ones; the directory of the images only if `make` says
/// so. Errors: not_found, denied.
Result<CriuDirectories> open_criu_directories(const CriuOptions& options, MakeImages make);

/// "criu VERB" with the arguments that both verbs share: directories, log and flags.
std::vector<std::string> criu_command(const std::string& program, const std::string& verb,
                                      const CriuDirectories& directories,
                                      const CriuOptions& options);

/// Why criu failed: the last three errors of its log. `printed` is used when there is no log.
Error criu_error(const CriuDirectories& directories, const std::string& verb,
                 const sys::ExitStatus& status, std::string_view printed);

/// A namespace that is not part of the container's images, because the container joined it by path.
struct OutsideNamespace {
  std::string type;  ///< "net"
  std::string key;   ///< "extRootNetNS", as in runc
  std::string path;
};
/// The namespaces that the container joins by path. Errors: unsupported (a type that criu cannot
/// leave out).
Result<std::vector<OutsideNamespace>> outside_namespaces(const plan::Plan& plan);

/// Refuses containers that criu cannot restore. Errors: unsupported (a terminal, a root file system
/// that is an overlay of layers, no mount namespace of its own).
Result<void> check_restorable(const plan::Plan& plan);

// Our files in the directory of the images, next to those of criu. runc and crun write the first
// one too.
inline constexpr const char* kDescriptorsFile = "descriptors.json";
inline constexpr const char* kOutsideMountsFile = "outside-mounts.json";
/// The name (criu --external) of all mounts of the null device, which mask files, as in runc's
/// images.
inline constexpr const char* kNullKey = "/dev/null";

/// The container's mounts that show files from outside of the container: file systems that are
/// mounted on the host too, and every mount at or below `bound`, the targets of the bind mounts in
/// the config. Not counted are file systems that the container's root shows already, and pseudo
/// file systems of the kernel, which may have only one instance; these do count if they are slaves
/// of a mount of the host. Pure.
std::vector<sys::MountEntry> outside_mounts(const std::vector<sys::MountEntry>& container,
                                            const std::vector<sys::MountEntry>& host,
                                            const std::vector<std::string>& bound);

}  // namespace berth::runtime
