// SPDX-License-Identifier: Apache-2.0
// What `berth doctor` has looked at, as plain values: gathered once (gather.hpp), judged by pure
// code (finding.hpp).
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

/// The caller. The ids are those outside of a user namespace that we would enter.
struct UserFacts {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string name;
  std::vector<uint32_t> groups;   ///< supplementary
  bool machine_root = false;      ///< root of the first user namespace
  bool inside_namespace = false;  ///< root of a namespace that somebody else made
  uint64_t subordinate_uids = 0;  ///< that the machine gives this user
  uint64_t subordinate_gids = 0;
  bool map_tools = false;  ///< newuidmap and newgidmap are installed
};

/// Something that was tried out. Neither: it was not tried, because something before it failed.
struct Trial {
  bool worked = false;
  std::optional<Error> failure;
  std::string note;  ///< a warning on the way
};

/// A directory that Berth keeps things in.
struct Place {
  std::string path;
  std::string existing;  ///< itself, or the nearest directory above it that exists
  std::optional<Error> unusable;
  std::optional<sys::FileSystem> file_system;  ///< of `existing`
};

struct CgroupFacts {
  bool mounted = false;
  bool unified = false;                  ///< cgroup v2 alone
  std::string own;                       ///< our place in the v2 hierarchy
  std::vector<std::string> controllers;  ///< that our place hands on, or could
  bool writable = false;                 ///< we may make groups below it
  bool manager = false;  ///< a systemd of this user's makes them, and hands on `controllers`
};

struct HostFacts {
  std::string kernel;
  UserFacts user;
  Trial user_namespace;  ///< not tried by root
  bool all_ids = false;  ///< the namespace that was entered has the subordinate ids
  Trial procfs;          ///< as `user_namespace`
  Trial overlay;
  std::optional<sys::ErofsWay> layer_images;  ///< how layers are mounted that are EROFS images
  std::optional<Error> no_layer_images;       ///< why they cannot be
  bool fuse_overlay = false;     ///< fuse-overlayfs can stand in for it; asked when it has to
  std::optional<Error> no_home;  ///< why there is no default place for the store
  std::string network = {};      ///< the default of containers; empty: not known
  std::optional<Error> no_network = {};  ///< why they cannot have it
  Place root;
  Place state;
  std::vector<std::string> missing_programs;  ///< of Berth, which every build has
  std::vector<std::string> missing_parts;     ///< programs of Berth that a build may leave out
  /// The loader's message about a program that cannot start with this system's libraries; empty
  /// where all can.
  std::string unfit_program = {};
  std::string program_directory;
  CgroupFacts cgroups;
  bool seccomp = false;
  bool systemd = false;      ///< is this machine's init
  std::string os_release{};  ///< the text of /etc/os-release
  bool selinux_enforcing = false;
  std::optional<Error> policy_error;
  std::string policy_source;     ///< file that the policy in force was made of; empty: none
  bool policy_outdated = false;  ///< policy.toml was changed after it was compiled
  std::string job;               ///< "Slurm job 42"; empty: not below a scheduler
};

/// A node that the driver has, and what lies at its path.
struct NodeFacts {
  gpu::Node expected;
  std::string owner;      ///< "GPU 0", "slice 0:1", "the driver"
  bool optional = false;  ///< nothing fails without it
  bool found = false;
  bool character = false;
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t mode = 0;
  uint32_t gid = 0;
  std::string group;      ///< name of `gid`, or the number
  int access_errno = 0;   ///< of reading and writing it as this user; 0: that works
  bool char_link = true;  ///< /dev/char/<major>:<minor> is there
};

/// A GPU on the PCI bus.
struct PciGpu {
  std::string address;
  std::string vendor;   ///< "10de"
  std::string driver;   ///< kernel driver that has it; empty: none
  bool listed = false;  ///< that driver lists it (NVIDIA)
};

/// A file of /etc/cdi or /var/run/cdi that is about GPUs.
struct CdiFile {
  std::string path;
  std::optional<Error> error;
  std::string kind;
  std::vector<std::string> missing_files;    ///< host paths that are not there
  std::vector<std::string> stale_nodes;      ///< "/dev/nvidia-uvm is 510:0, the file says 508:0"
  std::vector<std::string> driver_versions;  ///< that names of libraries tell
};

struct GpuFacts {
  bool synthetic = false;
  std::string driver_root = "/";
  std::optional<Error> error;  ///< why the driver could not be read
  gpu::Inventory inventory;
  std::chrono::milliseconds probe_time{0};
  std::vector<PciGpu> pci;
  bool nouveau = false;                    ///< that module is loaded
  std::map<std::string, uint32_t> majors;  ///< by driver name
  bool listed = false;                     ///< /proc/driver/nvidia is there
  std::string listed_version;              ///< what it says of the module; empty: nothing
  std::vector<NodeFacts> nodes;
  bool persistence_daemon = false;
  bool nvswitch = false;
  bool fabric_manager = false;
  std::vector<std::string> searched;         ///< directories, for libraries of the driver
  std::optional<sys::FileSystem> libraries;  ///< the file system of libcuda
  std::optional<sys::FileSystem> dev;
  std::vector<CdiFile> cdi;
  std::string toolkit_config;             ///< path; empty: none
  std::optional<Error> toolkit_error;     ///< why it cannot be read
  std::vector<std::string> toolkit_keys;  ///< "no-cgroups = true": those that are not defaults
  std::vector<std::string> hooks;         ///< files that make an engine call NVIDIA's hook
  bool container_use_devices = true;      ///< SELinux lets containers use devices
};

struct Facts {
  HostFacts host;
  GpuFacts gpu;
};

}  // namespace berth::doctor
