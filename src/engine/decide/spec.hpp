// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context/context.hpp"
#include "engine/request/keep_id.hpp"
#include "engine/request/request.hpp"
#include "engine/request/security.hpp"
#include "oci/runtime_spec.hpp"
#include "oci/user.hpp"

namespace berth::engine {

/// What a configuration is made of: everything that was looked up, decided or created before.
struct SpecInputs {
  const RunRequest& request;
  Identity identity = Identity::root;
  std::string id;
  std::string directory;            ///< of upper, work and the files of /etc; absolute
  std::vector<std::string> layers;  ///< lower directories, highest first
  std::string hostname;
  oci::ContainerUser user;
  std::vector<std::string> args;
  std::vector<std::string> environment;
  std::string cwd;
  Confinement confinement = {};
  std::optional<oci::BlockIo> block_io = std::nullopt;
  std::vector<Ulimit> ulimits = {};           ///< of permitted_ulimits()
  std::optional<int64_t> oom_score_adj = {};  ///< of permitted_oom_score()
  std::string store = {};                     ///< absolute; of the volumes that have names
  /// Namespaces of other containers by type ("pid", "network"), each a path.
  std::map<std::string, std::string> joined = {};
  std::string init_program = {};  ///< absolute, on the host; of --init
  bool host_root = false;         ///< the root file system is the host's own
  bool host_has_mqueue = true;    ///< /dev/mqueue, for containers that share the host's ipc
  /// Of the container whose network is shared: its names are this one's, too. Empty: none.
  std::string network_directory = {};
  std::string joined_shm = {};  ///< /dev/shm of the container whose ipc is shared; empty: none
  std::optional<KeptIds> kept = std::nullopt;  ///< of --userns keep-id
  std::vector<oci::Mount> image_mounts = {};   ///< of make_image_mounts()
  bool in_job = false;              ///< of a batch scheduler, whose cgroups keep what runs in it
  uint32_t last_group = INT32_MAX;  ///< that there is in the container; 0: root's alone
  bool own_accounts = false;        ///< kPasswdFile and kGroupFile lie in `directory`, for its /etc
};

/// The configuration of a container before GPUs are added: Docker's mounts, capabilities, seccomp
/// profile, masked and read-only paths; namespaces; limits. A volume or tmpfs of the request at the
/// destination of a default mount takes its place. Pure.
oci::Spec make_spec(const SpecInputs& inputs);

}  // namespace berth::engine
