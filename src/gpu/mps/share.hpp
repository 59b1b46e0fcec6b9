// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Multi-Process Service: a control daemon limits the programs of containers to a part of
// the GPUs. It is started for the first container and ended after the last one. See
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

/// The limits of each program on each GPU.
struct MpsLimits {
  std::optional<uint32_t> cores_percent;  ///< of the GPU's multiprocessors, 1 to 100
  std::optional<uint64_t> memory_bytes;

  bool operator==(const MpsLimits&) const = default;
};

/// The containers that compute through one daemon: it serves one user, one set of GPUs, and one set
/// of limits.
struct MpsShare {
  uint32_t user = 0;              ///< the user id of the programs in this user namespace
  std::vector<std::string> gpus;  ///< ids, sorted; CUDA numbers them in this order
  MpsLimits limits;

  bool operator==(const MpsShare&) const = default;
};

/// The name of the share's directory, "1000-9c0f…". It has the user id and a hash of the share, the
/// state directory and the ledger, so equal shares of different state directories or ledgers have
/// different names.
std::string name_of(const MpsShare& share, const std::string& state_dir, const std::string& ledger);

/// The variables that limit a control daemon from its start: waiting containers may connect at
/// once.
std::vector<std::string> environment_of(const MpsShare& share);

/// The control commands for the same limits. A daemon that does not know a limit returns an error
/// here.
std::vector<std::string> commands_of(const MpsShare& share);

/// Whether `reply`, to get_default_active_thread_percentage, means `percent`.
bool says_percent(std::string_view reply, uint32_t percent);
/// Whether `reply`, to get_default_device_pinned_mem_limit, contains a word that means `bytes`:
/// "2G", "2048M", a number of bytes or of MiB.
bool says_bytes(std::string_view reply, uint64_t bytes);

/// The directory where CUDA looks for a daemon by default: even a program that loses its
/// environment finds the daemon.
inline constexpr const char* kMpsPipes = "/tmp/nvidia-mps";
inline constexpr const char* kMpsPipesVariable = "CUDA_MPS_PIPE_DIRECTORY";

/// Paths below the state directory of the user that starts the containers; no other user can enter
/// it.
struct MpsPlace {
  std::string root;       ///< of all shares
  std::string directory;  ///< of this share
  std::string daemon;     ///< mounted at kMpsPipes for the daemon, but in no container
  std::string pipes;      ///< mounted at kMpsPipes in containers: only the part that they need
  std::string memory;     ///< mounted at /dev/shm for daemon and containers: a link to a
                          ///< directory in the machine's /dev/shm
  std::string logs;
};
MpsPlace place_of(const std::string& state_dir, const std::string& share);

/// A file of the driver under the name by which programs look for it.
struct MpsFile {
  std::string name;  ///< "libcuda.so.1", "nvidia-cuda-mps-server"
  std::string path;  ///< on the host
};

/// The input of berth-mps: the file kMpsOrder in the share's directory.
struct MpsOrder {
  MpsShare share;
  std::string ledger;              ///< its directory
  std::string control;             ///< nvidia-cuda-mps-control
  std::string probe;               ///< berth-gpu-probe
  std::string nvml;                ///< the library that it loads
  bool takes = false;              ///< only MPS may compute on the GPUs while the share exists
  std::string group;               ///< the group of the leases that name the share
  std::vector<std::string> keys;   ///< of the GPUs of these leases
  std::vector<std::string> nodes;  ///< the device nodes of these GPUs
  std::vector<MpsFile> files;      ///< the server, and the libraries that containers have
};
inline constexpr const char* kMpsOrder = "order.json";
inline constexpr const char* kMpsLock = "lock";      ///< one lock for all shares: held to start or
                                                     ///< end a share
inline constexpr const char* kMpsKeeper = "keeper";  ///< locked while the share's keeper lives
inline constexpr const char* kMpsReady = "ready";    ///< exists while the daemon answers
/// Prefix of files next to the shares; the id of a GPU follows. The file has the compute mode that
/// the GPU had before the share.
inline constexpr std::string_view kMpsMode = "mode-";

/// Prefix of the shares' memory directories; an unguessable name follows.
inline constexpr std::string_view kMpsMemory = "/dev/shm/berth-mps-";

/// Errors: not_found, corrupt.
Result<MpsOrder> read_order(const MpsPlace& place);
/// Removes the share's directories. The caller holds kMpsLock, and no container uses the share.
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

void fields(auto& v, MpsFile& f) {
  v.required("name", f.name);
  v.required("path", f.path);
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
  v.optional("files", o.files);
}

}  // namespace berth::gpu
