// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/child/activation.hpp"
#include "runtime/child/namespaces.hpp"
#include "runtime/mount/target.hpp"
#include "runtime/state/protocol.hpp"
#include "scan/loader.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/shared_buffer.hpp"

namespace berth::runtime {

/// The container that exec joins.
struct Joined {
  sys::Fd first_process;  ///< a pidfd
  int namespaces = 0;     ///< CLONE_NEW* of those that are not ours already
  sys::Fd root;           ///< where it is not that of its mount namespace
  /// A pid namespace affects only children: the process that has joined it makes another.
  bool forks_again() const { return (namespaces & CLONE_NEWPID) != 0; }
};

/// A file of the container's state that is mounted over one of the image.
struct StateFile {
  sys::Fd writable;
  sys::Fd mount;     ///< a detached view of it, where the parent may make one
  std::string path;  ///< on the host
};

/// Detached views of sources on the host, for a container's process that may not pass a directory
/// on the way there. Each is empty where the parent may not make one either.
struct HeldSources {
  std::vector<sys::Fd> binds;  ///< of the binds that are not early, in the order of the plan
  std::vector<sys::Fd> nodes;  ///< of the device nodes that are bound, the same
  sys::Fd root;                ///< of the directory that is the root
};

/// What the parent prepares before the clone, so that the child neither parses nor looks things up.
struct Prepared {
  CgroupViews cgroups;
  /// Set when systemd makes the cgroup: `cgroups` are looked up after that.
  std::optional<CgroupLayout> scope_layout;
  /// Of the root overlay, highest first: the mounted images; nothing for a directory.
  std::vector<std::optional<sys::Fd>> images;
  /// The whole root, if fuse-overlayfs serves it.
  sys::Fd served_root;
  /// The same of each image that is mounted as data, in the order of the plan.
  std::vector<std::vector<std::optional<sys::Fd>>> data_images;
  /// Mounts that needed the parent's rights or place, detached, in the order of the plan.
  std::vector<sys::Fd> early_mounts;
  std::optional<HeldSources> held_sources;
  StateFile loader_cache;          ///< glibc's; empty without a step that fills it
  StateFile loader_path;           ///< musl's
  StateFile loader_configuration;  ///< of ldconfig; empty if the root must not be changed
  sys::Fd loader_original;         ///< receives what the root had; empty if it is not needed
  sys::Fd loader_made;             ///< receives the names that were made there, likewise
  std::vector<scan::LibraryLink> loader_links;
  /// The seccomp program, which the parent compiles while the child mounts.
  sys::SharedBuffer seccomp;
  unsigned seccomp_flags = 0;
  std::optional<uint64_t> rights_fd;  ///< of LaunchRequest
  std::optional<Joined> joined;       ///< for exec
  BornInto born_into{};
  sys::Fd start_socket;  ///< listens for `start`; empty for `run`
  std::string bundle;
  std::string id;
  int preserve_fds = 0;  ///< all that are passed on, those of `activation` first
  Activation activation{};
  /// The container runs in the foreground: when berth-runtime dies, the kernel kills the first
  /// process with SIGKILL (PR_SET_PDEATHSIG), also once the program runs. While it is being set up,
  /// every container is killed then.
  bool die_with_parent = false;
  bool no_pivot = false;
};

/// The files that tell a container's loader where libraries are: the image's, if any, and the
/// container's own, writable.
struct LoaderHandles {
  sys::Fd image_cache;
  sys::Fd image_path;
  sys::Fd cache;
  bool cache_in_root = false;  ///< `cache` is a file of the root; begins as a copy of `image_cache`
  sys::Fd path;                ///< empty: the image has no musl
  sys::Fd configuration;       ///< empty: ldconfig cannot do its work
  sys::Fd original;            ///< as Prepared::loader_original
  sys::Fd kept;                ///< receives a copy of what is written to `cache`, or empty
};

/// The progress of the container's first process through the plan.
struct Inside {
  const Prepared& prepared;
  Channel channel;
  sys::Fd root{};
  Parents parents{};  ///< of nodes and links
  /// The mounts at /proc and /sys, by that path; the latest of a path counts.
  std::vector<std::pair<std::string, sys::Fd>> kernel_views{};
  sys::Fd null_device{};       ///< a read-only mount of the host's; masks files
  sys::Fd empty_tree{};        ///< the tmpfs that masks directories
  sys::Fd terminal{};          ///< the container's end, empty without one
  Channel starter{sys::Fd()};  ///< the caller of `start`
  sys::Fd mount_space{};       ///< joined when nothing of the host is needed any more
  /// Namespaces to join by path that turned out to be the caller's own.
  std::set<std::string> shared{};
  std::string program{};              ///< argv[0] resolved
  std::optional<std::string> home{};  ///< if the environment has none
  pid_t host_pid = 0;
  sys::Fd time_offsets{};  ///< of this process, where it cannot open them itself
  LoaderHandles loader{};
  sys::Fd own_dev{};       ///< the file system mounted at /dev, if it is the container's
  size_t data_taken = 0;   ///< of the data images
  size_t early_taken = 0;  ///< of the mounts that the parent has made
  size_t binds_taken = 0;  ///< of the held sources
  size_t nodes_taken = 0;
  CgroupViews cgroups{};    ///< as in Prepared, or of the scope
  size_t seccomp_size = 0;  ///< instructions, after AwaitConfinement
  bool directory_denied = false;
  bool ready = false;  ///< create has returned; failures go to `starter`
};

}  // namespace berth::runtime
