// SPDX-License-Identifier: Apache-2.0
// Mounts that a program serves (FUSE), of which the kernel keeps the books: no mount table shows
// them, and the program ends by itself with the last handle and the last mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A program of libfuse 3 that serves one image. It is called as
/// "PROGRAM -f [OPTION…] /proc/self/fd/IMAGE /dev/fd/DEVICE": libfuse takes an open device in the
/// place of a mount point (since 3.3) and leaves mounting to us.
struct FuseServer {
  std::vector<std::string> programs;  ///< absolute paths; the first one that is there
  std::vector<std::string> options;
  std::string package;  ///< what to install where none of them is there; empty: a program of ours
  bool writable = false;
  uint64_t capabilities = 0;   ///< what the server keeps of ours; usually none
  std::vector<int> keep = {};  ///< descriptors that `options` name as /proc/self/fd/N
};

/// Mounts what `server` makes of the file that `image` is open at, detached, in the user namespace
/// of the caller; read-only unless `server` says otherwise. The server is nobody's child, in a
/// session of its own, and holds nothing but the image, the device and what `server` leaves it.
/// Returns when it answers.
/// For a process without threads.
/// Errors: not_found (no such program, no FUSE), denied, corrupt (the server's last words), io.
/// fuse(4); fsopen(2)
Result<Fd> mount_fuse(const FuseServer& server, const Fd& image);

/// The same for a server that takes no image: it is called without that word.
Result<Fd> mount_fuse(const FuseServer& server);

/// Whether such a server can be had: one of its programs and the device.
/// Errors: not_found, denied.
Result<void> check_fuse(const FuseServer& server);

}  // namespace berth::sys
