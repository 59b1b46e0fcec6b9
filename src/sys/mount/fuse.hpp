// SPDX-License-Identifier: Apache-2.0
// Mounts that a program serves (FUSE) and only handles refer to: no mount table shows them, and the
// program ends by itself with the last handle and the last mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A program of libfuse 3 that serves one image. It is called as "PROGRAM -f [OPTION…]
/// /proc/self/fd/IMAGE /dev/fd/DEVICE": libfuse accepts an open device instead of a mount point
/// (since 3.3) and leaves mounting to us.
struct FuseServer {
  std::vector<std::string> programs;  ///< absolute paths; the first that exists is used
  std::vector<std::string> options;
  std::string package;  ///< the package to install if none exists; empty: it is our own program
  bool writable = false;
  uint64_t capabilities = 0;   ///< that the server keeps; usually none
  std::vector<int> keep = {};  ///< descriptors named in `options` as /proc/self/fd/N
};

/// Mounts the image that `image` is open at, served by `server`, detached, in the caller's user
/// namespace; read-only unless `server` says otherwise. The server is not our child, has its own
/// session, and holds only the image, the device and what `server` leaves it. Returns when it
/// answers. For a process without threads.
/// Errors: not_found (no such program, no FUSE), denied, corrupt (the server's last output), io.
/// fuse(4); fsopen(2)
Result<Fd> mount_fuse(const FuseServer& server, const Fd& image);

/// The same for a server without an image: that argument is left out.
Result<Fd> mount_fuse(const FuseServer& server);

/// Whether such a server is available: one of its programs and the device.
/// Errors: not_found, denied.
Result<void> check_fuse(const FuseServer& server);

}  // namespace berth::sys
