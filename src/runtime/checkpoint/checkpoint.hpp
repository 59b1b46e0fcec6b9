// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: the container's processes; the
// kernel's data about their descriptors and mounts are passed to criu as arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "runtime/checkpoint/criu.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// The arguments of checkpoint.
struct CheckpointRequest {
  std::string id;
  CriuOptions criu;
  std::string parent_path;  ///< images of the previous pre-dump, relative to the new images
  std::string page_server;  ///< "ADDRESS:PORT"
  std::optional<uint64_t> status_fd;
  bool leave_running = false;
  bool pre_dump = false;  ///< dump only memory, and let the container continue
};

/// Writes the processes of a running or paused container into image files, and then ends the
/// container, unless the request says to leave it running. On failure the container continues as
/// before.
/// Errors: usage (the container's status, a flag), unsupported (find_criu(), check_restorable()),
/// io (criu's own reasons).
Result<void> checkpoint(const Store& store, const CheckpointRequest& request, Log& log);

}  // namespace berth::runtime
