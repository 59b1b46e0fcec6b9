// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: the container's processes, which see
// the new one as soon as it has joined their namespaces. The process document comes from the
// caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/process_changes.hpp"
#include "runtime/child/activation.hpp"
#include "runtime/container.hpp"
#include "runtime/launch.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// The arguments of exec.
struct ExecRequest : ProcessTakers {
  std::string id;
  std::string process_file;  ///< a process document; empty: the config's process with `changes`
  oci::ProcessChanges changes;
  std::string cgroup;    ///< below the container's own cgroup: "path" or "controller:path"
  int preserve_fds = 0;  ///< besides those of `activation`
  Activation activation{};
  std::optional<uint64_t> rights_fd;  ///< as in LaunchRequest
  bool ignore_paused = false;
  /// This process joins the container's cgroup if it may, so that work that the image asks for
  /// repeatedly (a health check) is charged to the container.
  bool charge_container = false;
};

/// Runs one more process in a container that is created or running. In the foreground this call
/// waits until the process ends and returns its exit status (128 + n for signal n); detached it
/// returns 0. Errors: usage (the container's state, an invalid document), not_found and denied (the
/// program, with Stage::command in `report`).
Result<int> exec(const Store& store, const ExecRequest& request, Detach detach, Report& report,
                 Log& log);

}  // namespace berth::runtime
