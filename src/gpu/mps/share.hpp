// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Multi-Process Service: a control daemon, started for containers and ended after the last
// of them, keeps the programs that compute through it to a part of the GPUs. See
// docs/decisions/0159. Source: nvidia-cuda-mps-control(1), NVIDIA's "Multi-Process Service" manual.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/ledger/record.hpp"

namespace berth::gpu {

/// What each program is kept to on each GPU.
struct MpsLimits {
  std::optional<uint32_t> cores_percent;  ///< of its multiprocessors, 1 to 100
  std::optional<uint64_t> memory_bytes;

  bool operator==(const MpsLimits&) const = default;
};

/// All containers whose programs compute through one daemon: it serves one user, knows one set of
/// GPUs, and has one set of limits.
struct MpsShare {
  uint32_t user = 0;              ///< of the programs, as this process counts
  std::vector<std::string> gpus;  ///< ids, sorted; CUDA counts them so
  MpsLimits limits;

  bool operator==(const MpsShare&) const = default;
};

/// "1000-9c0f…": a directory's name. The same for equal shares alone, of one state directory and
/// one ledger: what is kept there is one user's.
std::string name_of(const MpsShare& share, const std::string& state_dir, const std::string& ledger);

/// The variables by which a control daemon starts with the limits: containers that have been there
/// before it may call at once.
std::vector<std::string> environment_of(const MpsShare& share);

/// What it is told besides, a line each: a daemon that does not know a limit refuses it here.
std::vector<std::string> commands_of(const MpsShare& share);

/// Whether `reply`, of get_default_active_thread_percentage, says `percent`.
bool says_percent(std::string_view reply, uint32_t percent);
/// Whether `reply`, of get_default_device_pinned_mem_limit, has a word that says `bytes`: "2G",
/// "2048M", a number of bytes or of MiB.
bool says_bytes(std::string_view reply, uint64_t bytes);

/// Where CUDA looks for a daemon when not told otherwise: a program that loses its environment
/// finds the daemon nevertheless.
inline constexpr const char* kMpsPipes = "/tmp/nvidia-mps";
inline constexpr const char* kMpsPipesVariable = "CUDA_MPS_PIPE_DIRECTORY";

/// Below the state directory of who starts the containers, which nobody else enters.
struct MpsPlace {
  std::string root;       ///< of all shares
  std::string directory;  ///< of this one
  std::string daemon;     ///< kMpsPipes of the daemon; no container's
  std::string pipes;      ///< kMpsPipes of containers: what they need of that
  std::string memory;     ///< /dev/shm of all of them: a link to a directory of the machine's
  std::string logs;
};
MpsPlace place_of(const std::string& state_dir, const std::string& share);

/// What berth-mps is told, in the share's directory: kMpsOrder.
struct MpsOrder {
  MpsShare share;
  std::string ledger;              ///< its directory
  std::string control;             ///< nvidia-cuda-mps-control
  std::string probe;               ///< berth-gpu-probe
  std::string nvml;                ///< the library that it loads
  bool takes = false;              ///< nobody but MPS computes on the GPUs meanwhile
  std::string group;               ///< of the leases that name the share
  std::vector<std::string> keys;   ///< of their GPUs
  std::vector<std::string> nodes;  ///< of those GPUs
};
inline constexpr const char* kMpsOrder = "order.json";
inline constexpr const char* kMpsLock = "lock";      ///< of all shares: one begins, or ends
inline constexpr const char* kMpsKeeper = "keeper";  ///< locked while the share's keeper lives
inline constexpr const char* kMpsReady = "ready";    ///< there while the daemon answers
/// Beside the shares, and the id of a GPU: the compute mode that it had before a share took it.
inline constexpr std::string_view kMpsMode = "mode-";

/// Of the directories that shares have for memory; what follows nobody can guess.
inline constexpr std::string_view kMpsMemory = "/dev/shm/berth-mps-";

/// Errors: not_found, corrupt.
Result<MpsOrder> read_order(const MpsPlace& place);
/// Removes its directories. While kMpsLock is held, and nobody is left.
void remove_share(const MpsPlace& place);

void fields(auto& v, MpsLimits& l) {
  v.optional("cores_percent", l.cores_percent);
  v.optional("memory_bytes", l.memory_bytes);
}

void fields(auto& v, MpsShare& s) {
  v.required("user", s.user);
  v.required("gpus", s.gpus);
  v.required("limits", s.limits);
}

void fields(auto& v, MpsOrder& o) {
  v.required("share", o.share);
  v.required("ledger", o.ledger);
  v.required("control", o.control);
  v.required("probe", o.probe);
  v.required("nvml", o.nvml);
  v.required("takes", o.takes);
  v.required("group", o.group);
  v.required("keys", o.keys);
  v.required("nodes", o.nodes);
}

}  // namespace berth::gpu
