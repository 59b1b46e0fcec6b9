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
  int namespaces = 0;     ///< CLONE_NEW* of its namespaces that are not ours already
  sys::Fd root;           ///< its root, if that is not the root of its mount namespace
  /// A pid namespace affects only children: the process that has joined one makes another process.
  bool forks_again() const { return (namespaces & CLONE_NEWPID) != 0; }
};

/// A file in the container's state directory that is mounted over a file of the image.
struct StateFile {
  sys::Fd writable;
  sys::Fd mount;     ///< a detached view of the file, if the parent may make one
  std::string path;  ///< on the host
};

/// Detached views of sources on the host, for a container's process that may lack search permission
/// for a directory of their paths. A view is empty if the parent may not make one either.
struct HeldSources {
  std::vector<sys::Fd> binds;  ///< of the binds that are not early, in the order of the plan
  std::vector<sys::Fd> nodes;  ///< of the device nodes that are bound, in the order of the plan
  sys::Fd root;                ///< of the directory that is the root
};

/// What the parent prepares before the clone, so that the child neither parses nor looks things up.
struct Prepared {
  CgroupViews cgroups;
  /// Set when systemd makes the cgroup: `cgroups` are looked up after that.
  std::optional<CgroupLayout> scope_layout;
  /// The mounted images of the root overlay, highest layer first; nothing for a directory.
  std::vector<std::optional<sys::Fd>> images;
  /// The whole root, if fuse-overlayfs serves it.
  sys::Fd served_root;
  /// As `images`, for each image that is mounted as data, in the order of the plan.
  std::vector<std::vector<std::optional<sys::Fd>>> data_images;
  /// Mounts that needed the parent's rights or place, detached, in the order of the plan.
  std::vector<sys::Fd> early_mounts;
  std::optional<HeldSources> held_sources;
  StateFile loader_cache;          ///< glibc's cache; empty without a step that fills it
  StateFile loader_path;           ///< musl's list of directories
  StateFile loader_configuration;  ///< of ldconfig; empty if the root must not be changed
  sys::Fd loader_original;         ///< receives the cache that the root had; empty if not needed
  sys::Fd loader_made;             ///< receives the names of the files made in the root; empty if
                                   ///< not needed
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
  int preserve_fds = 0;  ///< the number of descriptors to pass on, first those of `activation`
  Activation activation{};
  /// The container runs in the foreground: when berth-runtime dies, the kernel kills the first
  /// process with SIGKILL (PR_SET_PDEATHSIG), also once the program runs. During the setup this
  /// holds for every container.
  bool die_with_parent = false;
  bool no_pivot = false;
};

/// The files that tell a container's loader where libraries are: those of the image, if any, and
/// the container's own ones, open for writing.
struct LoaderHandles {
  sys::Fd image_cache;
  sys::Fd image_path;
  sys::Fd cache;
  bool cache_in_root = false;  ///< `cache` is a file in the root, made as a copy of `image_cache`
  sys::Fd path;                ///< empty: the image has no musl
  sys::Fd configuration;       ///< empty: ldconfig cannot do its work
  sys::Fd original;            ///< as Prepared::loader_original
  sys::Fd kept;                ///< receives a copy of the bytes written to `cache`; may be empty
};

/// The progress of the container's first process through the plan.
struct Inside {
  const Prepared& prepared;
  Channel channel;
  sys::Fd root{};
  Parents parents{};  ///< the directories of nodes and links
  /// The mounts at /proc and /sys, by that path; the latest of a path counts.
  std::vector<std::pair<std::string, sys::Fd>> kernel_views{};
  sys::Fd null_device{};       ///< a read-only view of the host's null device; masks files
  sys::Fd empty_tree{};        ///< the tmpfs that masks directories
  sys::Fd terminal{};          ///< the container's end of its terminal; empty without a terminal
  Channel starter{sys::Fd()};  ///< the caller of `start`
  sys::Fd mount_space{};       ///< to be joined when nothing of the host is needed any more
  /// Namespaces to join by path that turned out to be the caller's own.
  std::set<std::string> shared{};
  std::string program{};              ///< argv[0] resolved
  std::optional<std::string> home{};  ///< the user's home, if the environment has no HOME
  pid_t host_pid = 0;
  sys::Fd time_offsets{};  ///< the clock offsets file of this process, if it cannot open that
                           ///< itself
  LoaderHandles loader{};
  sys::Fd own_dev{};       ///< the file system mounted at /dev, if it is the container's
  size_t data_taken = 0;   ///< how many of Prepared::data_images are used
  size_t early_taken = 0;  ///< how many of Prepared::early_mounts are used
  size_t binds_taken = 0;  ///< how many of HeldSources::binds are used
  size_t nodes_taken = 0;
  CgroupViews cgroups{};    ///< as in Prepared, or those of the scope
  size_t seccomp_size = 0;  ///< instructions, after AwaitConfinement
  bool directory_denied = false;
  bool ready = false;  ///< create has returned; failures go to `starter`
};

}  // namespace berth::runtime
