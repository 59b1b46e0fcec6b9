// SPDX-License-Identifier: Apache-2.0
// Mounts that a program serves (FUSE) and to which only handles refer. No mount table shows them,
// and the program ends by itself when the last handle and the last mount are gone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A program of libfuse 3 that serves one image. It is called as "PROGRAM -f [OPTION…]
/// /proc/self/fd/IMAGE /dev/fd/DEVICE": libfuse accepts an open device instead of a mount point
/// (since 3.3), so that we do the mounting.
struct FuseServer {
  std::vector<std::string> programs;  ///< absolute paths; the first that exists is used
  std::vector<std::string> options;
  std::string package;  ///< the package to install if none exists; empty: the server is a program
                        ///< of Berth
  bool writable = false;
  uint64_t capabilities = 0;   ///< the capabilities that the server keeps; usually none
  std::vector<int> keep = {};  ///< descriptors named in `options` as /proc/self/fd/N
};

/// Makes a detached mount of the file open as `image`, served by `server`, in the caller's user
/// namespace; read-only unless `server` says otherwise. The server process is not our child, has
/// its own session, and holds only the image, the device, and the capabilities and descriptors that
/// `server` lists. Returns when the server process answers. For a process without threads.
/// Errors: not_found (no such program, no FUSE), denied, corrupt (the server's last output), io.
/// fuse(4); fsopen(2)
Result<Fd> mount_fuse(const FuseServer& server, const Fd& image);

/// The same for a server without an image: the argument IMAGE is left out.
Result<Fd> mount_fuse(const FuseServer& server);

/// Whether one of the programs of `server` and the FUSE device are available.
/// Errors: not_found, denied.
Result<void> check_fuse(const FuseServer& server);

}  // namespace berth::sys
