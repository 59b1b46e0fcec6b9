// SPDX-License-Identifier: Apache-2.0
// Packets with descriptors (unix(7), SCM_RIGHTS). Only system calls: usable in a fork of a process
// with threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slurm/hold.hpp"

namespace berth::spank {

constexpr int kMostDescriptors = slurm::kHandles;

/// Sends a packet. On failure returns false and sets errno. `count` is at most kMostDescriptors.
bool send(int socket, const void* bytes, size_t size, const int* fds, int count);

struct Received {
  int64_t bytes = -1;  ///< 0: no sender is left; -1: see errno
  int fds = 0;
};
/// Waits for a packet, unless `flags` has MSG_DONTWAIT. The received descriptors are close-on-exec;
/// those beyond `room` are closed at once.
Received receive(int socket, void* bytes, size_t size, int* fds, int room, int flags = 0);

}  // namespace berth::spank
