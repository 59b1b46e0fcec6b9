// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/fuse_overlay.hpp"

#include <linux/capability.h>

#include <algorithm>

#include "sys/file/file.hpp"
#include "sys/mount/fuse.hpp"
#include "sys/user/identity.hpp"

namespace berth::sys {
namespace {

constexpr uint64_t bit(int capability) {
  return uint64_t{1} << capability;
}

// It changes the container's files on its behalf, so it keeps the capabilities for that: writing
// other users' files, and changing owners. They do not suffice to mount another file system or to
// affect a process.
constexpr uint64_t kOverFiles = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) |
                                bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_MKNOD) |
                                bit(CAP_SETFCAP);

// The kernel shows "trusted.overlay.opaque", the mark in root's layers, only with this capability.
uint64_t kept_rights() {
  bool root = effective_uid() == 0 && in_initial_user_namespace();
  return root ? kOverFiles | bit(CAP_SYS_ADMIN) : kOverFiles;
}

FuseServer fuse_overlayfs() {
  FuseServer server;
  server.programs = {"/usr/bin/fuse-overlayfs", "/usr/local/bin/fuse-overlayfs"};
  server.package = "fuse-overlayfs";
  return server;
}

/// The server's option for a handle; keeps the handle.
std::string hand_over(const Fd& directory, FuseServer& server) {
  server.keep.push_back(directory.get());
  return fd_path(directory);
}

}  // namespace

Result<void> check_fuse_overlay() {
  return check_fuse(fuse_overlayfs());
}

Result<Fd> mount_fuse_overlay(const std::vector<Layer>& lower, const OverlayTop& top) {
  FuseServer server = fuse_overlayfs();
  server.capabilities = kept_rights();
  std::string words = "lowerdir=";
  for (const Layer& layer : lower) {
    if (words.back() != '=') words += ':';
    words += hand_over(layer.root, server);
  }
  if (top.upper) {
    server.writable = true;
    words += ",upperdir=" + hand_over(top.upper, server);
    words += ",workdir=" + hand_over(top.work, server);
    auto& options = top.options;
    bool lost = std::ranges::find(options, "volatile") != options.end();
    if (lost) words += ",volatile";
  }
  server.options = {"-o", words};
  return mount_fuse(server);
}

}  // namespace berth::sys
