// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: the container, whose processes see
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

/// What exec changes of the process in the container's config.
struct ProcessChanges {
  std::vector<std::string> args;
  std::optional<std::string> cwd;
  std::vector<std::string> env;   ///< added behind the container's
  std::optional<uint32_t> uid{};  ///< without one, user and groups are the config's
  std::optional<uint32_t> gid{};
  std::vector<uint32_t> additional_gids{};
  std::vector<std::string> capabilities{};  ///< "CAP_NET_ADMIN", added
  std::string apparmor_profile;
  std::string selinux_label;
  bool no_new_privileges = false;
};

/// What is asked for with exec.
struct ExecRequest : ProcessTakers {
  std::string id;
  std::string process_file;  ///< a process document; empty: the config's process with `changes`
  ProcessChanges changes;
  bool terminal = false;
  std::string cgroup;    ///< below the container's own: "path" or "controller:path"
  int preserve_fds = 0;  ///< beside those of `activation`
  Activation activation{};
  std::optional<uint64_t> rights_fd;  ///< as in LaunchRequest
  bool ignore_paused = false;
  /// This process joins the container's cgroup, as far as it may: what the container's image asks
  /// for again and again (a health check) is the container's to pay for.
  bool charge_container = false;
};

/// Runs one more process in a container that is created or running. In the foreground it stays
/// until its end and gives its exit status (128 + n for signal n); detached it gives 0. Errors:
/// usage (the container's state, a document that is wrong), not_found and denied (the program, with
/// Stage::command in `report`).
Result<int> exec(const Store& store, const ExecRequest& request, Detach detach, Report& report,
                 Log& log);

}  // namespace berth::runtime
