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

/// The input of make_spec(): everything that was looked up, decided or created before.
struct SpecInputs {
  const RunRequest& request;
  Identity identity = Identity::root;
  std::string id;
  std::string directory;            ///< with upper, work and the files of /etc; absolute
  std::vector<std::string> layers;  ///< lower directories, highest first
  std::string hostname;
  oci::ContainerUser user;
  std::vector<std::string> args;
  std::vector<std::string> environment;
  std::string cwd;
  Confinement confinement = {};
  std::optional<oci::BlockIo> block_io = std::nullopt;
  std::vector<Ulimit> ulimits = {};           ///< from permitted_ulimits()
  std::optional<int64_t> oom_score_adj = {};  ///< from permitted_oom_score()
  std::string store = {};                     ///< absolute; for named volumes
  /// Paths of the namespaces of other containers, by type ("pid", "network").
  std::map<std::string, std::string> joined = {};
  std::string init_program = {};  ///< absolute, on the host; for --init
  bool host_root = false;         ///< the root file system is the host's own
  bool host_has_mqueue = true;    ///< /dev/mqueue exists on the host
  /// The directory of the container that shares its network with this one: /etc/hosts and the other
  /// files with names come from there. Empty: none.
  std::string network_directory = {};
  std::string joined_shm = {};                 ///< /dev/shm of a joined ipc namespace; empty: none
  std::optional<KeptIds> kept = std::nullopt;  ///< for --userns keep-id
  std::vector<oci::Mount> image_mounts = {};   ///< from make_image_mounts()
  bool in_job = false;  ///< in a job of a batch scheduler, which requires its own cgroups
  uint32_t last_group = INT32_MAX;  ///< the last group that may ping; 0: only root's
  bool own_accounts = false;        ///< `directory` has kPasswdFile and kGroupFile
};

/// The configuration of a container before GPUs are added: Docker's mounts, capabilities, seccomp
/// profile, masked and read-only paths; namespaces; limits. A volume or tmpfs of the request
/// replaces a default mount with the same destination. Pure.
oci::Spec make_spec(const SpecInputs& inputs);

}  // namespace berth::engine
