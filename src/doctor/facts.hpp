// SPDX-License-Identifier: Apache-2.0
// The facts that `berth doctor` examines, as plain values. gather.hpp gathers them once; pure code
// (finding.hpp) judges them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/inventory/inventory.hpp"
#include "sys/file/file_system.hpp"
#include "sys/mount/layer.hpp"

namespace berth::doctor {

/// The caller. The ids are as seen outside of the user namespace that Berth would enter.
struct UserFacts {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;
  std::vector<uint32_t> groups;   ///< supplementary
  bool machine_root = false;      ///< root of the initial user namespace
  bool inside_namespace = false;  ///< root of another program's user namespace
  uint64_t subordinate_uids = 0;  ///< number of ids in /etc/subuid for this user
  uint64_t subordinate_gids = 0;
  bool map_tools = false;  ///< newuidmap and newgidmap are installed
};

/// The result of a test. Neither success nor error: not tested, because an earlier test failed.
struct Trial {
  bool worked = false;
  std::optional<Error> failure;
  std::string note;  ///< a warning of the test
};

/// A directory that Berth uses.
struct Place {
  std::string path;
  std::string existing;  ///< the directory, or its nearest parent that exists
  std::optional<Error> unusable;
  std::optional<sys::FileSystem> file_system;  ///< of `existing`
};

struct CgroupFacts {
  bool mounted = false;
  bool unified = false;                  ///< cgroup v2 only
  std::string own;                       ///< our cgroup in the v2 hierarchy
  std::vector<std::string> controllers;  ///< that our cgroup delegates or could delegate
  bool writable = false;                 ///< we may make child groups
  bool manager = false;  ///< the user's systemd makes child groups and delegates `controllers`
};

struct HostFacts {
  std::string kernel;
  UserFacts user;
  Trial user_namespace;  ///< not tested for root
  bool all_ids = false;  ///< the namespace that was entered has the subordinate ids
  Trial procfs;          ///< mounted in that namespace; not tested for root
  Trial overlay;
  std::optional<sys::ErofsWay> layer_images;  ///< how EROFS layers are mounted
  std::optional<Error> no_layer_images;       ///< why they cannot be mounted
  bool fuse_overlay = false;             ///< fuse-overlayfs can replace overlayfs; only tested if
                                         ///< needed
  std::optional<Error> no_home;          ///< why there is no default place for the store
  std::string network = {};              ///< the default network of containers; empty: unknown
  std::optional<Error> no_network = {};  ///< why containers cannot have that network
  Place root;
  Place state;
  std::vector<std::string> missing_programs;  ///< missing programs that every build of Berth has
  std::vector<std::string> missing_parts;     ///< missing programs that a build of Berth may leave
                                              ///< out
  /// The loader's message about a program of Berth that cannot start with this system's libraries.
  /// Empty if all programs can.
  std::string unfit_program = {};
  std::string program_directory;
  CgroupFacts cgroups;
  bool seccomp = false;
  bool systemd = false;      ///< systemd is the init of this machine
  std::string os_release{};  ///< the content of /etc/os-release
  bool selinux_enforcing = false;
  std::optional<Error> policy_error;
  std::string policy_source;     ///< the source file of the policy in force; empty: no policy
  bool policy_outdated = false;  ///< policy.toml was changed after compilation
  std::string job;               ///< "Slurm job 42"; empty: not in a job
};

/// A device node of the driver, and the file at its path.
struct NodeFacts {
  gpu::Node expected;
  std::string owner;      ///< "GPU 0", "slice 0:1", "the driver"
  bool optional = false;  ///< nothing fails if it is missing
  bool found = false;
  bool character = false;
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t mode = 0;
  uint32_t gid = 0;
  std::string group;      ///< name of `gid`, or the number
  int access_errno = 0;   ///< of opening it for reading and writing as this user; 0: it works
  bool char_link = true;  ///< /dev/char/<major>:<minor> exists
};

/// A GPU on the PCI bus.
struct PciGpu {
  std::string address;
  std::string vendor;   ///< "10de"
  std::string driver;   ///< the kernel driver bound to it; empty: none
  bool listed = false;  ///< the NVIDIA driver lists it
};

/// A file of /etc/cdi or /var/run/cdi about GPUs.
struct CdiFile {
  std::string path;
  std::optional<Error> error;
  std::string kind;
  std::vector<std::string> missing_files;    ///< host paths that do not exist
  std::vector<std::string> stale_nodes;      ///< "/dev/nvidia-uvm is 510:0, the file says 508:0"
  std::vector<std::string> driver_versions;  ///< from names of libraries
};

struct GpuFacts {
  bool synthetic = false;
  std::string driver_root = "/";
  std::optional<Error> error;  ///< why the driver could not be read
  gpu::Inventory inventory;
  std::chrono::milliseconds probe_time{0};
  std::vector<PciGpu> pci;
  bool nouveau = false;                    ///< the module nouveau is loaded
  std::map<std::string, uint32_t> majors;  ///< by driver name, from /proc/devices
  bool listed = false;                     ///< /proc/driver/nvidia exists
  std::string listed_version;              ///< the module's version in /proc/driver/nvidia; empty:
                                           ///< none
  std::vector<NodeFacts> nodes;
  bool persistence_daemon = false;
  bool nvswitch = false;
  bool fabric_manager = false;
  std::vector<std::string> searched;         ///< directories searched for the driver's libraries
  std::optional<sys::FileSystem> libraries;  ///< the file system of libcuda
  std::optional<sys::FileSystem> dev;
  std::vector<CdiFile> cdi;
  std::string toolkit_config;             ///< path; empty: none
  std::optional<Error> toolkit_error;     ///< why it cannot be read
  std::vector<std::string> toolkit_keys;  ///< not at their default: "no-cgroups = true"
  std::vector<std::string> hooks;         ///< files that make an engine call NVIDIA's hook
  bool container_use_devices = true;      ///< SELinux lets containers use devices
};

struct Facts {
  HostFacts host;
  GpuFacts gpu;
};

}  // namespace berth::doctor
