// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: the container's processes, which see
// the new one from the moment it has joined their namespaces; the process document is the caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/activation.hpp"
#include "runtime/container.hpp"
#include "runtime/launch.hpp"
#include "runtime/state.hpp"

namespace berth::runtime {

/// The changes that exec makes to the process of the container's config.
struct ProcessChanges {
  std::vector<std::string> args;
  std::optional<std::string> cwd;
  std::vector<std::string> env;   ///< appended to the container's
  std::optional<uint32_t> uid{};  ///< without it, user and groups are the config's
  std::optional<uint32_t> gid{};
  std::vector<uint32_t> additional_gids{};
  std::vector<std::string> capabilities{};  ///< "CAP_NET_ADMIN", added
  std::string apparmor_profile;
  std::string selinux_label;
  bool no_new_privileges = false;
};

/// The arguments of exec.
struct ExecRequest {
  std::string id;
  std::string process_file;  ///< a process document; empty: the config's process with `changes`
  ProcessChanges changes;
  bool terminal = false;
  std::string pid_file;
  std::string console_socket;
  std::string pidfd_socket;
  std::string cgroup;    ///< below the container's own: "path" or "controller:path"
  int preserve_fds = 0;  ///< besides those of `activation`
  Activation activation{};
  std::optional<uint64_t> rights_fd;  ///< as in LaunchRequest
  bool ignore_paused = false;
  /// This process joins the container's cgroup where it may: work that the container's image asks
  /// for repeatedly (a health check) is charged to the container.
  bool charge_container = false;
};

/// Runs one more process in a container that is created or running. In the foreground it stays
/// until the end and returns the exit status (128 + n for signal n); detached it returns 0. Errors:
/// usage (the container's state, an invalid document), not_found and denied (the program, with
/// Stage::command in `report`).
Result<int> exec(const Store& store, const ExecRequest& request, Detach detach, Report& report,
                 Log& log);

}  // namespace berth::runtime
